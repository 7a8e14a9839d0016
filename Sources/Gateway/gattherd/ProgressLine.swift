import GattherdHistory
import GattherdModel
import Glibc

/// Shows the progress of a long command if standard error is a terminal.
struct ProgressLine {
    private static let interval = Duration.milliseconds(200)

    private let noun: String
    private let isShown: Bool
    private let stride: Int
    private var count = 0
    private var next = ContinuousClock.now.advanced(by: .seconds(1))
    private var isDrawn = false

    /// - Parameters:
    ///   - noun: The plural of the counted things.
    ///   - isBusy: True if the terminal shows the result itself.
    ///   - stride: The number of things after which the clock is read.
    init(_ noun: String, isBusy: Bool, stride: Int = 256) {
        (self.noun, self.stride) = (noun, stride)
        isShown = !isBusy && isatty(STDERR_FILENO) == 1
    }

    /// Adds one to the count.
    ///
    /// - Parameter part: The finished part of the work, from 0 to 1; evaluated occasionally.
    mutating func advance(_ part: () -> Double?) {
        count += 1
        guard isShown, count.isMultiple(of: stride), .now >= next else { return }
        next = .now.advanced(by: Self.interval)
        isDrawn = true
        let percent = part().map { ", \(Int(min(max(0, $0), 1) * 100)) %" } ?? ""
        Terminal.replaceLine("\(count) \(noun)\(percent)")
    }

    /// Erases the line.
    mutating func finish() {
        if isDrawn { Terminal.replaceLine("") }
        isDrawn = false
    }
}

/// The progress of a query, by the time of its rows.
struct QueryProgress {
    private let times: ClosedRange<Timestamp>?

    init(_ query: HistoryQuery, _ reader: HistoryReader, withSummaries: Bool = false) {
        guard let extent = try? reader.extent(withSummaries: withSummaries) else {
            times = nil
            return
        }
        let first = max(extent.lowerBound, query.since ?? extent.lowerBound)
        times = first...max(first, min(extent.upperBound, query.until ?? extent.upperBound))
    }

    func part(at time: Timestamp) -> Double? {
        guard let times, times.lowerBound < times.upperBound else { return nil }
        let span = Double(times.upperBound.microseconds) - Double(times.lowerBound.microseconds)
        return (Double(time.microseconds) - Double(times.lowerBound.microseconds)) / span
    }
}
