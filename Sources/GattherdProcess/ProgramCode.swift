import CProgramCode

/// The code and constants of this program and its libraries.
public enum ProgramCode {
    /// Takes all of it out of resident memory: what is used is mapped from the kernel's page cache again, some pages at a
    /// time, and what only a start needs stays away.
    ///
    /// The kernel keeps it in that cache as long as it has room. Nothing happens to pages that somebody has written
    /// into, as debuggers do, nor where `/proc` does not tell.
    public static func release() { program_code_release() }
}
