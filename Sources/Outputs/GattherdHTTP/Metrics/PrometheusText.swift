import GattherdLog

/// A Prometheus metric: a name and its points.
package struct MetricFamily: Sendable {
    package enum Kind: String, Sendable {
        case counter
        case gauge
    }

    /// A value with its labels.
    package struct Point: Sendable {
        /// Labels that are unique in the family.
        package var labels: KeyValuePairs<String, String>
        package var value: Double

        package init(_ value: Double, _ labels: KeyValuePairs<String, String> = [:]) {
            self.value = value
            self.labels = labels
        }
    }

    /// The name in `snake_case`, with the base unit, and `_total` for a counter.
    package var name: String
    package var kind: Kind
    /// A sentence without a full stop.
    package var help: String
    package var points: [Point]

    package init(_ name: String, _ kind: Kind, _ help: String, _ points: [Point]) {
        self.name = name
        self.kind = kind
        self.help = help
        self.points = points
    }

    package init(_ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger) {
        self.init(name, kind, help, [Point(Double(value))])
    }

    init(_ counter: Counter) {
        self.init("gattherd_" + counter.name, .counter, counter.help, counter.value)
    }

    /// Returns one family for all counters of a name, with the output as the label.
    static func families(_ outputs: [(output: String, counters: [Counter])]) -> [MetricFamily] {
        var families: [MetricFamily] = []
        for (output, counters) in outputs {
            for counter in counters {
                let point = Point(Double(counter.value), ["output": output])
                if let index = families.firstIndex(where: { $0.name == "gattherd_" + counter.name }) {
                    families[index].points.append(point)
                } else {
                    families.append(MetricFamily("gattherd_" + counter.name, .counter, counter.help, [point]))
                }
            }
        }
        return families
    }
}

/// Metrics in Prometheus' text format, version 0.0.4.
struct PrometheusText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var bytes: [UInt8] = []

    /// Writes the families, except those without points.
    init(_ families: [MetricFamily]) {
        for family in families where !family.points.isEmpty { add(family) }
    }

    private mutating func add(_ family: MetricFamily) {
        write("# HELP \(family.name) ")
        write(escaped: family.help)
        write("\n# TYPE \(family.name) \(family.kind.rawValue)\n")
        for point in family.points {
            write(family.name)
            write(point.labels)
            write(" \(Self.number(point.value))\n")
        }
    }

    private mutating func write(_ labels: KeyValuePairs<String, String>) {
        guard !labels.isEmpty else { return }
        var separator = "{"
        for (name, value) in labels {
            write("\(separator)\(name)=\"")
            write(escaped: value, quotes: true)
            write("\"")
            separator = ","
        }
        write("}")
    }

    private mutating func write(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func write(escaped text: String, quotes: Bool = false) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): write("\\\\")
            case UInt8(ascii: "\n"): write("\\n")
            case UInt8(ascii: "\"") where quotes: write("\\\"")
            default: bytes.append(byte)
            }
        }
    }

    private static func number(_ value: Double) -> String {
        if let whole = Int64(exactly: value) { return "\(whole)" }
        if value.isNaN { return "NaN" }
        return value.isFinite ? "\(value)" : value < 0 ? "-Inf" : "+Inf"
    }
}
