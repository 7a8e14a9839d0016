import CLinux

/// The code and constants of this program and its libraries.
public enum ProgramCode {
    /// Takes all of it out of resident memory: what is used goes on to be mapped from the kernel's page cache, 64 KB and
    /// about a microsecond at a time, and what only a start needs stays away.
    public static func release() { clinux_release_code() }
}
