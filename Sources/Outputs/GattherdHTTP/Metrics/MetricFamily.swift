/// Numbers that Prometheus can collect, under one name.
public struct MetricFamily: Sendable {
    public enum Kind: String, Sendable {
        case counter
        case gauge
    }

    /// One number.
    public struct Point: Sendable {
        /// Names and values that tell it from the others of the family.
        public var labels: KeyValuePairs<String, String>
        public var value: Double

        public init(_ value: Double, _ labels: KeyValuePairs<String, String> = [:]) {
            self.value = value
            self.labels = labels
        }
    }

    /// `snake_case` with its base unit, and `_total` for a counter.
    public var name: String
    public var kind: Kind
    /// A sentence without its full stop.
    public var help: String
    public var points: [Point]

    public init(_ name: String, _ kind: Kind, _ help: String, _ points: [Point]) {
        self.name = name
        self.kind = kind
        self.help = help
        self.points = points
    }

    public init(_ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger) {
        self.init(name, kind, help, [Point(Double(value))])
    }
}
