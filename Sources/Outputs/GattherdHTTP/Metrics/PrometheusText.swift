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
