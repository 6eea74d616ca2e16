//! Lets a library that was linked against a recent glibc load with an old one (2.28, the glibc of RHEL 8).
//!
//! glibc 2.30 added `gettid`, which std uses where it exists. glibc 2.33 and 2.34 gave `stat64`, `fstat64`, `dlopen` and
//! `dlsym` new symbol versions without changing what they do. The old versions stay available, so the tracer asks for those;
//! std's calls of `gettid`, `stat64` and `fstat64` are bound to the definitions here.
//! The first argument of the old stat functions is the version of `struct stat`, 1 on x86-64.

std::arch::global_asm!(
    ".symver dlopen, dlopen@GLIBC_2.2.5",
    ".symver dlsym, dlsym@GLIBC_2.2.5",
    ".symver __xstat64, __xstat64@GLIBC_2.2.5",
    ".symver __fxstat64, __fxstat64@GLIBC_2.2.5",
    ".globl stat64",
    ".hidden stat64",
    "stat64:",
    "mov rdx, rsi",
    "mov rsi, rdi",
    "mov edi, 1",
    "jmp __xstat64@PLT",
    ".globl fstat64",
    ".hidden fstat64",
    "fstat64:",
    "mov rdx, rsi",
    "mov esi, edi",
    "mov edi, 1",
    "jmp __fxstat64@PLT",
    ".weak gettid",
    ".hidden gettid",
    "gettid:",
    "mov eax, 186",
    "syscall",
    "ret",
);
