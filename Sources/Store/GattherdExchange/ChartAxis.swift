import GattherdModel

/// The marks of a value axis: round numbers around the measured values.
struct ValueAxis {
    let low: Double
    let high: Double
    /// The marks in ascending order.
    let marks: [Double]
    private let step: Double

    /// - Parameters:
    ///   - low: The minimum.
    ///   - high: The maximum.
    ///   - count: The maximum number of steps between marks.
    init(_ low: Double, _ high: Double, count: Int) {
        let span = high - low
        let isFlat = !(span.isFinite && span > (abs(high) + abs(low)) * 1e-12)
        step = ChartStep.value(covering: isFlat ? max(abs(high), 1) / 2 : span, count: max(1, count - 1))
        let step = step
        let first = (low / step).rounded(.down)
        let last = max(first + 1, (high / step).rounded(.up))
        func mark(_ number: Double) -> Double {
            min(max(-.greatestFiniteMagnitude, number * step), .greatestFiniteMagnitude)
        }
        self.low = mark(first)
        self.high = mark(last)
        marks = last - first <= 64 ? (0...Int(last - first)).map { mark(first + Double($0)) } : [low, high]
    }

    /// Returns the position of a value, from 0 at the lowest mark to 1 at the highest.
    func position(of value: Double) -> Double {
        let position = (value / 2 - low / 2) / (high / 2 - low / 2)
        return position.isNaN ? 0 : min(max(0, position), 1)
    }

    func label(_ mark: Double) -> String { ChartNumber.text(mark, step: step) }
}

/// The marks of a time axis.
struct TimeAxis {
    /// The positions of the marks, from 0 at the left end to 1, with their labels.
    let marks: [(position: Double, label: String)]
    /// The day of the left end.
    let day: String

    /// - Parameters:
    ///   - times: The left and the right end.
    ///   - count: The maximum number of marks that fit.
    init(_ times: Range<Timestamp>, count: Int) {
        let (start, end) = (times.lowerBound.microseconds, times.upperBound.microseconds)
        let (length, isBeyond) = end.subtractingReportingOverflow(start)
        let span = isBeyond ? .max : max(1, length)
        let step = ChartStep.time(covering: span, count: max(1, count))
        var marks: [(position: Double, label: String)] = []
        var mark = times.lowerBound.rounded(downTo: step).microseconds
        while mark < end && marks.count <= count {
            if mark >= start {
                let position = (Double(mark) - Double(start)) / Double(span)
                marks.append((min(max(0, position), 1), Self.label(mark, step, span)))
            }
            let (next, isBeyond) = mark.addingReportingOverflow(step)
            guard !isBeyond else { break }
            mark = next
        }
        self.marks = marks
        day = String(times.lowerBound.rfc3339.prefix(10))
    }

    private static func label(_ mark: Int64, _ step: Int64, _ span: Int64) -> String {
        let text = Timestamp(microseconds: mark).rfc3339
        let day: Int64 = 86_400_000_000
        func part(_ range: Range<Int>) -> String { String(text.dropFirst(range.lowerBound).prefix(range.count)) }
        if step >= day { return part(0..<10) }
        if span > day { return part(5..<10) + " " + part(11..<16) }
        if step >= 60_000_000 { return part(11..<16) }
        return step >= 1_000_000 ? part(11..<19) : part(17..<23)
    }
}

/// Number formats of charts.
enum ChartNumber {
    /// Formats the number with enough decimals to distinguish values that differ by `step`.
    static func text(_ number: Double, step: Double) -> String {
        var decimals = 0
        var power = 1.0
        while decimals < 9 && abs((step * power).rounded() - step * power) > 1e-6 * step * power {
            decimals += 1
            power *= 10
        }
        let rounded = (number * power).rounded()
        guard abs(rounded) < 1e15, decimals < 9 else { return "\(number)" }
        let digits = String(Int64(rounded.magnitude))
        let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
        let point = decimals == 0 ? "" : "." + padded.suffix(decimals)
        return (rounded < 0 ? "-" : "") + padded.dropLast(decimals) + point
    }

    /// Formats the number with about five significant digits.
    static func text(_ number: Double) -> String {
        guard number.isNormal else { return "0" }
        var step = 1.0
        while abs(number) / step < 10_000 && step > 1e-8 { step /= 10 }
        let long = text(number, step: step)
        guard long.contains(".") else { return long }
        let short = long.reversed().drop { $0 == "0" }
        return String((short.first == "." ? short.dropFirst() : short).reversed())
    }
}

/// Readable distances between two marks of a time or value axis.
enum ChartStep {
    private static let second: Int64 = 1_000_000
    private static let day = 86_400 * second
    /// The steps in microseconds; steps of a minute or more are multiples of minutes or hours.
    private static let times: [Int64] =
        [1, 2, 5, 10, 20, 50, 100, 200, 500].map { $0 * 1000 }
        + [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].map { $0 * second }
        + [1, 2, 3, 6, 12].map { $0 * 3600 * second } + [1, 2, 7, 14, 28, 91, 182, 364].map { $0 * day }

    /// Returns the shortest step in microseconds such that at most `count` steps cover `span` microseconds.
    static func time(covering span: Int64, count: Int) -> Int64 {
        let least = span / Int64(max(1, count)) + (span % Int64(max(1, count)) == 0 ? 0 : 1)
        if let time = times.first(where: { $0 >= least }) { return time }
        let years = least / (364 * day) + 1
        return years * 364 * day
    }

    /// Returns the shortest step of 1, 2, 5, 10, … such that at most `count` steps cover `span`; always above zero.
    static func value(covering span: Double, count: Int) -> Double {
        let least = span / Double(max(1, count))
        guard least.isNormal, least > 0 else { return 1 }
        var power = 1.0
        while power > least { power /= 10 }
        while power * 10 <= least { power *= 10 }
        return [1, 2, 5, 10].map { $0 * power }.first { $0 >= least } ?? least
    }
}
