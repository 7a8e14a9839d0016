import GattherdExchange
import GattherdHistory
import GattherdModel
import Testing

@Suite struct ChartTests {
    private static let start = Timestamp(microseconds: 1_795_231_200_000_000)  // 2026-11-21T03:20:00Z

    /// A minute per bucket.
    private func bucket(
        _ minute: Int,
        _ range: ClosedRange<Double>,
        stream: String = "heart_rate",
        metric: String = "heart_rate",
        unit: String? = "bpm",
        n: Int = 2
    ) -> HistoryBucket {
        HistoryBucket(
            time: Self.start.advanced(by: .seconds(60 * minute)),
            device: "strap",
            stream: stream,
            metric: metric,
            unit: unit,
            n: n,
            min: .real(range.lowerBound),
            mean: range.lowerBound / 2 + range.upperBound / 2,
            max: .real(range.upperBound)
        )
    }

    private func chart(minutes: Int, limit: Int = 136, _ buckets: [HistoryBucket]) -> Chart {
        let end = Self.start.advanced(by: .seconds(60 * minutes))
        var chart = Chart(Self.start..<end, step: .seconds(60), limit: limit)
        for bucket in buckets { chart.add(bucket) }
        return chart
    }

    @Test func `a terminal plot has round marks and a numeric summary`() {
        let rising = (0..<60).map { bucket($0, Double($0)...Double($0)) }
        let lines = TerminalChart(width: 60, height: 8, isASCII: true).lines(chart(minutes: 60, rising))
        #expect(lines.count == 1 + 8 + 3)
        #expect(lines[0].hasPrefix("strap heart_rate, bpm  "))
        #expect(lines[0].hasSuffix("n 120  min 0  mean 29.5  max 59"))
        #expect(lines[1].hasPrefix("        60 +"))
        #expect(lines[8].hasPrefix("         0 +"))
        #expect(lines[10].contains("03:30") && lines[10].contains("04:00"))
        #expect(lines[11].hasSuffix("2026-11-21, UTC"))
        #expect(lines.allSatisfy { $0.count <= 60 })
        let firstDots = lines[1...8].map { $0.dropFirst(12).firstIndex { $0 != " " } ?? $0.endIndex }
        #expect(firstDots == firstDots.sorted(by: >), "rises to the right")
    }

    @Test func `braille dots fill the range of a span, and a gap stays empty`() {
        let buckets = [bucket(0, 0...100)] + (30..<60).map { bucket($0, 50...50) }
        let lines = TerminalChart(width: 72, height: 4).lines(chart(minutes: 60, limit: 60, buckets))
        let body = lines[1...4].map { Array($0.dropFirst(12)) }
        #expect(body.allSatisfy { $0[0] == "⣿" }, "the first span reaches from top to bottom")
        #expect(body.allSatisfy { $0[2..<29].allSatisfy { $0 == " " } })
        #expect(body.map { $0[40] }.filter { $0 != " " }.count == 1)
    }

    @Test func `sparse but regular measurements are connected`() {
        let buckets = stride(from: 0, to: 60, by: 5).map { bucket($0, 7...7) }
        let lines = TerminalChart(width: 72, height: 4).lines(chart(minutes: 60, limit: 60, buckets))
        let dotted = lines[1...4].map { $0.dropFirst(12).count { $0 != " " } }
        #expect(dotted.max() ?? 0 >= 55)
    }

    @Test func `each metric has its own plot, constant metrics too`() {
        let buckets = [bucket(0, 3...3), bucket(0, 0.001...0.002, metric: "rr", unit: nil)]
        let lines = TerminalChart(width: 80, height: 4).lines(chart(minutes: 1, buckets))
        #expect(lines.filter { $0.hasPrefix("strap ") }.count == 2)
        #expect(lines.contains { $0.hasPrefix("strap rr  ") && $0.hasSuffix("min 0.001  mean 0.0015  max 0.002") })
    }

    @Test func `streams with one metric name have plots of their own, with their names`() {
        let buckets = ["battery", "vendor"].enumerated().flatMap { index, stream in
            (0..<3).map { bucket($0, Double(index)...Double(index), stream: stream, metric: "level", unit: "%") }
        }
        let lines = TerminalChart(width: 80, height: 4).lines(chart(minutes: 3, buckets + [bucket(0, 3...3)]))
        let titles = lines.filter { $0.hasPrefix("strap ") }
        #expect(
            titles.map { $0.prefix { $0 != "," } } == ["strap heart_rate", "strap battery/level", "strap vendor/level"]
        )
        #expect(titles[1].hasSuffix("n 6  min 0  mean 0  max 0") && titles[2].hasSuffix("n 6  min 1  mean 1  max 1"))
    }

    @Test func `points in one column are merged, with exact extremes and a weighted mean`() {
        let buckets = (0..<600).map { bucket($0, 0...($0 == 300 ? 1000 : 10)) }
        let lines = TerminalChart(width: 60, height: 4).lines(chart(minutes: 600, limit: 20, buckets))
        #expect(lines[0].hasSuffix("n 1200  min 0  mean 5.825  max 1000"))
    }

    @Test(
        arguments: [
            0...0, -5...(-5), 1e-300...2e-300, -1e300...1e300, 0...(.greatestFiniteMagnitude),
            -.greatestFiniteMagnitude ... .greatestFiniteMagnitude, 1e17...(1e17 + 16),
        ] as [ClosedRange<Double>]
    )
    func `numbers of any size can be drawn`(range: ClosedRange<Double>) {
        let chart = chart(minutes: 2, [bucket(0, range), bucket(1, range)])
        #expect(TerminalChart(width: 80).lines(chart).count == 16)
        #expect(!TerminalChart(width: 80).lines(chart).joined().contains("nan"))
    }

    @Test(arguments: [1, 2]) func `the largest numbers can be drawn next to a gap`(n: Int) {
        let buckets = [bucket(0, -1.7e308...(-1.7e308), n: n), bucket(2, 1.7e308...1.7e308, n: n)]
        let lines = TerminalChart(width: 80).lines(chart(minutes: 4, buckets))
        #expect(lines.count == 16)
        #expect(!lines.joined().contains("nan") && !lines.joined().contains("inf"))
    }

    @Test(
        arguments: [1, 59, 3601, 90_000]
    )
    func `the time axis uses round steps that fit the width`(seconds: Int) {
        let (times, step) = Chart.fit(Self.start...Self.start.advanced(by: .seconds(seconds)), limit: 100)
        let span = times.upperBound.microseconds - times.lowerBound.microseconds
        let count = span / Int64(step / .microseconds(1))
        #expect((20...100).contains(count))
        #expect(times.lowerBound <= Self.start && times.upperBound > Self.start.advanced(by: .seconds(seconds)))
    }

    @Test(
        arguments: [Int64.min...Int64.min, .min ... .max, .max ... .max, 253_402_300_800_000_000...(.max), -1...0]
    )
    func `times beyond RFC 3339 are drawn at the end of the axis`(times: ClosedRange<Int64>) {
        let range = Timestamp(microseconds: times.lowerBound)...Timestamp(microseconds: times.upperBound)
        for limit in [1, 2, 80, 1000] {
            let fit = Chart.fit(range, limit: limit)
            #expect(!fit.times.isEmpty)
            var chart = Chart(fit.times, step: fit.step, limit: limit)
            chart.add(bucket(0, 1...1))
            #expect(!TerminalChart(width: 80, isASCII: true).lines(chart).isEmpty)
        }
    }

    @Test func `times and steps at the integer limits are drawn`() {
        let all = Timestamp(microseconds: .min)..<Timestamp(microseconds: .max)
        for step in [Duration.microseconds(1), .seconds(60), .seconds(Int64.max)] {
            for times in [
                all, Timestamp(microseconds: .max - 5)..<Timestamp(microseconds: .max), Self.start..<all.upperBound,
            ] {
                var chart = Chart(times, step: step, limit: 100)
                chart.add(bucket(0, 1...2))
                #expect(!TerminalChart(width: 80).lines(chart).isEmpty)
            }
        }
    }
}
