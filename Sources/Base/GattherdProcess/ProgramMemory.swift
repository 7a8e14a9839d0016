import CLinux

/// The heap of this process.
public enum ProgramMemory {
    /// The allocator's initial threshold for blocks that get a mapping of their own, in bytes.
    private static let largeBlock: Int32 = 128 * 1024

    /// Returns free heap pages to the kernel, also those between blocks that are in use.
    public static func release() { malloc_trim(0) }

    /// Returns blocks of 128 KiB and more to the kernel as soon as they are freed.
    ///
    /// By default the allocator raises this threshold to the largest block that was ever freed. Such blocks then stay
    /// in its arenas, with small blocks between them that keep them from being returned.
    public static func returnLargeBlocks() { mallopt(M_MMAP_THRESHOLD, largeBlock) }
}
