import GattherdModel
import GattherdYAML

/// A curve through known points, such as that of a battery: values between two points lie on a line.
struct ValueTable: Hashable, Sendable {
    struct Point: Hashable, Sendable {
        let number: Double
        let value: Double
    }

    /// The points of the curve, at least two, ordered by number.
    private let points: [Point]

    /// Creates a table; `nil` unless there are two points or more, all with different numbers.
    init?(_ points: [Point]) {
        let ordered = points.sorted { $0.number < $1.number }
        let isUnique = zip(ordered, ordered.dropFirst()).allSatisfy { $0.number < $1.number }
        guard ordered.count >= 2, isUnique else { return nil }
        self.points = ordered
    }

    /// Returns the value at a number; that of the first or last point outside of the table.
    func value(at number: Double) -> Double {
        guard let above = points.firstIndex(where: { $0.number >= number }) else { return points.last?.value ?? 0 }
        guard above > 0, points[above].number > number else { return points[above].value }
        let (low, high) = (points[above - 1], points[above])
        let part = (number - low.number) / (high.number - low.number)
        return (low.value + part * (high.value - low.value)).rounded(toDigits: Double.meaningfulDigits)
    }
}

/// Reads `table`.
enum ValueTableReader {
    private static let maximumPoints = 64

    /// Returns `nil` if it is absent, or after a reported error.
    static func table(_ field: MappingReader) -> ValueTable? {
        guard let node = field.node("table") else { return nil }
        let number = ProfileGrammar<Rational>.number
        let points = (node.members ?? []).prefix(maximumPoints).compactMap { member -> ValueTable.Point? in
            guard let key = number.read(member.key, field.findings),
                let value = number.read(member.value, field.findings)
            else { return nil }
            return ValueTable.Point(number: key.value, value: value.value)
        }
        let isWhole = points.count == node.members?.count
        if let table = ValueTable(points), isWhole { return table }
        let advice = "such as {2.2: 0, 2.8: 60, 3.0: 100}"
        field.report("a table has 2 to \(maximumPoints) different numbers and their values, \(advice)", at: "table")
        return nil
    }
}
