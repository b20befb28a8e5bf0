//! Where things stand, as a pure function of the environment; both binaries use it (ux.md section 6, corrections 16).
