import CLinux
import GattherdSync

/// The heap of this process.
public enum ProgramMemory {
    /// The allocator's initial threshold for blocks that get a mapping of their own, in bytes.
    private static let largeBlock: Int32 = 128 * 1024
    /// The longest pause between two returns of free memory.
    private static let longestPause = Duration.seconds(900)

    /// Returns free heap pages to the kernel, also those between blocks that are in use.
    public static func release() { malloc_trim(0) }

    /// Returns blocks of 128 KiB and more to the kernel as soon as they are freed.
    ///
    /// By default the allocator raises this threshold to the largest block that was ever freed. Such blocks then stay
    /// in its arenas, with small blocks between them that keep them from being returned.
    public static func returnLargeBlocks() { mallopt(M_MMAP_THRESHOLD, largeBlock) }

    /// Returns free memory to the kernel at once, and then ever more rarely, up to once in 15 minutes, until cancelled.
    public static func releaseRepeatedly() async {
        returnLargeBlocks()
        var pause = Duration.seconds(1)
        repeat {
            release()
            pause = min(pause * 4, longestPause)
        } while (try? await Task.sleep(for: pause, clock: .loop)) != nil
    }
}
