import CProgramMemory

/// What this program and its libraries hold of memory without using it.
public enum ProgramMemory {
    /// Gives back what is free of the heap, and takes all code and constants out of resident memory.
    ///
    /// What is used of the latter is mapped from the kernel's page cache again, some pages at a time, and what only a
    /// start needs stays away. The kernel keeps it in that cache as long as it has room. Nothing happens to pages that
    /// somebody has written into, as debuggers do, nor where `/proc` does not tell.
    public static func release() { program_memory_release() }

    /// From now on blocks of 128 KiB and more go back as soon as they are freed, so that a stall leaves nothing behind.
    public static func returnLargeBlocks() { program_memory_return_large_blocks() }
}
