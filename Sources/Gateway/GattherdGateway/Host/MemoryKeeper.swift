import GattherdProcess
import GattherdSync

/// Returns free memory to the system while the daemon runs.
enum MemoryKeeper {
    private static let longestPause = Duration.seconds(900)

    /// Returns free memory at the start, and then ever more rarely, up to once in ``longestPause``, until cancelled.
    static func run() async {
        ProgramMemory.returnLargeBlocks()
        var pause = Duration.seconds(1)
        repeat {
            ProgramMemory.release()
            pause = min(pause * 4, longestPause)
        } while (try? await Task.sleep(for: pause, clock: .loop)) != nil
    }
}
