//! The laboratory in real time: namespaces, real kernels, real programs.
