import CLinux
import GattherdExchange
import GattherdHistory
import GattherdModel
import Glibc

/// Draws history on the terminal.
struct HistoryPlot {
    private let selection: HistorySelection
    private let step: Duration?

    init(_ selection: HistorySelection, _ step: Duration?) {
        self.selection = selection
        self.step = step
    }

    func run() throws(CommandFailure) {
        let destination = try OutputDestination(path: selection.output)
        guard let chart = try chart(), !chart.isEmpty else {
            try selection.expectNames()
            throw CommandFailure(
                .data,
                "gattherd history: there are no numbers to plot; choose another time, device or metric"
            )
        }
        Self.draw(chart, to: destination)
        try destination.finish()
    }

    static func draw(_ chart: Chart, to destination: OutputDestination) {
        _ = destination.write(terminal.lines(chart).map { Terminal.harmless($0) + "\n" }.joined())
    }

    private func chart() throws(CommandFailure) -> Chart? {
        var query = selection.query
        var chart: Chart?
        try selection.read { (reader) throws(StoreFault) in
            guard let found = try reader.extent(ofNumbers: query) else { return }
            let first = query.since ?? found.lowerBound
            let last = query.until?.advanced(by: .microseconds(-1)) ?? found.upperBound
            let fit = Chart.fit(first...max(first, last), limit: Self.terminal.limit)
            // Rows that are added meanwhile belong to the next chart.
            query.until = query.until ?? fit.times.upperBound
            var drawn = Chart(fit.times, step: step ?? fit.step, limit: Self.terminal.limit)
            var progress = ProgressLine("spans", isBusy: false)
            let times = QueryProgress(query, reader, withSummaries: true)
            try reader.buckets(query, every: step ?? fit.step) { bucket in
                drawn.add(bucket)
                progress.advance { times.part(at: bucket.time) }
                return true
            }
            progress.finish()
            chart = drawn
        }
        return chart
    }

    static var terminal: TerminalChart {
        let columns = Int(clinux_terminal_size(STDOUT_FILENO).columns)
        let width = columns > 0 ? columns : Terminal.environment("COLUMNS").flatMap { Int($0) } ?? 80
        return TerminalChart(width: width, isASCII: !Terminal.hasUnicode)
    }
}
