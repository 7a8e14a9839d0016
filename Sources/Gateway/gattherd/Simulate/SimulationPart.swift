import FoundationEssentials
import GattherdProcess
import Glibc

/// A program of a simulation, and the file that it writes to.
struct SimulationPart: Sendable {
    /// The part's name in messages.
    let title: String
    private let log: String
    private let child: ChildProcess
    private let endSignal: Int32

    /// Starts `program`, with its standard output and error in `log`.
    ///
    /// - Throws: ``CommandFailure`` if it cannot be started.
    init(
        _ title: String,
        _ program: String,
        _ arguments: [String],
        log: String,
        endSignal: Int32 = SIGTERM
    ) throws(CommandFailure) {
        self.title = title
        self.endSignal = endSignal
        self.log = log
        let file = unsafe open(log, O_CREAT | O_WRONLY | O_APPEND | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw CommandFailure(.cannotCreate, "gattherd simulate: cannot write \(log)") }
        defer { close(file) }
        do throws(SpawnError) {
            child = try ChildProcess(program, arguments, output: .descriptor(file), errors: .descriptor(file))
        } catch {
            throw CommandFailure(.unavailable, "gattherd simulate: \(error.description)")
        }
    }

    var hasEnded: Bool { child.exitStatus != nil }
    var hasSucceeded: Bool { child.exitStatus == .exited(0) }

    /// Waits until the program has ended.
    func wait() async { _ = await child.wait() }

    /// The time to end in order: the daemon drains to the broker for up to 5 s.
    private static let stopLimit = Duration.seconds(10)

    /// Sends the signal for its end, and SIGKILL after ``stopLimit``.
    func stop() async {
        child.signal(endSignal)
        await withTaskGroup { group in
            group.addTask { await wait() }
            group.addTask {
                guard (try? await Task.sleep(for: Self.stopLimit)) != nil else { return }
                child.signal(SIGKILL)
                await wait()
            }
            await group.next()
            group.cancelAll()
        }
    }

    /// The first lines of its output; `nil` until they are complete.
    func firstLines(_ count: Int) -> [Substring]? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        return lines.count < count ? nil : Array(lines.prefix(count))
    }

    /// The exit status and the last lines of output.
    var obituary: String {
        let end =
            switch child.exitStatus {
            case .exited(let code)?: "ended with exit code \(code)"
            case .signalled(let number)?: "was ended by signal \(number)"
            case nil: "does not answer"
            }
        let words = text.split(separator: "\n").suffix(10).map { "  \($0)\n" }.joined()
        return "gattherd simulate: \(title) \(end)" + (words.isEmpty ? "" : "; its last output:\n\(words)")
    }

    private var text: String {
        FileManager.default.contents(atPath: log).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
