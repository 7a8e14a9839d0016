import CLinux
import GattherdGateway
import GattherdModel
import GattherdProcess
import GattherdSync
import Glibc

/// The full-screen status, redrawn every second until Ctrl-C.
struct StatusScreen: Sendable {
    static let period = Duration.seconds(1)

    private let client: DaemonClient
    private let file: String

    init(_ client: DaemonClient, file: String) {
        self.client = client
        self.file = file
    }

    private enum Event: Sendable {
        case answer(Result<DaemonStatus, CommandFailure>)
        /// The terminal's size has changed.
        case resize
        case end
    }

    /// Draws until a signal, then restores the terminal.
    func run(from first: StatusSample) async {
        let (events, post) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(8))
        let signals = ProcessSignals.stream(of: SIGINT, SIGTERM, SIGHUP, SIGWINCH)
        Terminal.write(ScreenFrame.opening, to: STDOUT_FILENO)
        defer { Terminal.write(ScreenFrame.closing, to: STDOUT_FILENO) }
        draw(first, nil)
        // Cancelled at the end of the scope.
        async let _ = forward(signals, to: post)
        poll(post)
        await draw(events, from: first)
    }

    private func forward(_ signals: AsyncStream<Int32>, to post: AsyncStream<Event>.Continuation) async {
        for await signal in signals { post.yield(signal == SIGWINCH ? .resize : .end) }
    }

    /// Requests the status on a separate thread, so that Ctrl-C works while the daemon does not answer.
    private func poll(_ post: AsyncStream<Event>.Continuation) {
        let client = client
        _ = NamedThread(name: "status") {
            while true {
                sleep(UInt32(Self.period.components.seconds))
                let answer = Result { () throws(CommandFailure) in try client.status() }
                if case .terminated = post.yield(.answer(answer)) { return }
            }
        }
    }

    private func draw(_ events: AsyncStream<Event>, from first: StatusSample) async {
        var (sample, problem) = (first, String?.none)
        for await event in events {
            switch event {
            case .answer(.success(let status)): (sample, problem) = (StatusSample(status, after: sample), nil)
            case .answer(.failure(let failure)): problem = failure.message
            case .resize: break
            case .end: return
            }
            draw(sample, problem)
        }
    }

    private func draw(_ sample: StatusSample, _ problem: String?) {
        var lines = StatusTable(sample, file: file).lines
        if let problem {
            let age = RelativeTime.length(SystemClock.now - sample.time)
            lines.insert(StatusTable.Line(text: "\(problem); status of \(age) ago:", style: .bad), at: 0)
        }
        let size = clinux_terminal_size(STDOUT_FILENO)
        let frame = ScreenFrame(
            columns: size.columns > 0 ? Int(size.columns) : 80,
            rows: size.rows > 0 ? Int(size.rows) : 24,
            hasColour: Terminal.hasColour
        )
        Terminal.write(frame.text(lines), to: STDOUT_FILENO)
    }
}

/// The bytes that draw lines on a terminal.
///
/// One write replaces the screen without clearing it first, which avoids flicker.
struct ScreenFrame {
    /// Switches to the alternate screen and hides the cursor; ``closing`` restores both.
    static let opening = "\u{1B}[?1049h\u{1B}[?25l"
    static let closing = "\u{1B}[?25h\u{1B}[?1049l"

    let columns: Int
    let rows: Int
    let hasColour: Bool

    /// Returns the lines that fit; terminals with mode 2026 show them at once.
    func text(_ lines: [StatusTable.Line]) -> String {
        var shown = lines
        if lines.count > rows {
            let hidden = lines.count - max(0, rows - 1)
            shown = lines.prefix(max(0, rows - 1)) + [.init(text: "… \(hidden) more lines", style: .dimmed)]
        }
        let body = shown.map { decorated(fitted($0.text), $0.style) + "\u{1B}[K" }.joined(separator: "\r\n")
        return "\u{1B}[?2026h\u{1B}[H" + body + "\u{1B}[J\u{1B}[?2026l"
    }

    /// Returns the text cut to the width, without control characters.
    private func fitted(_ text: String) -> String {
        let safe = Terminal.harmless(text)
        return safe.count > columns ? safe.prefix(max(0, columns - 1)) + "…" : safe
    }

    private func decorated(_ text: String, _ style: StatusTable.Line.Style) -> String {
        guard hasColour, let code = style.code else { return text }
        return "\u{1B}[\(code)m\(text)\u{1B}[0m"
    }
}

extension StatusTable.Line.Style {
    /// The number of an ANSI style.
    fileprivate var code: Int? {
        switch self {
        case .plain: nil
        case .heading: 1
        case .dimmed: 2
        case .warning: 33
        case .bad: 31
        }
    }
}
