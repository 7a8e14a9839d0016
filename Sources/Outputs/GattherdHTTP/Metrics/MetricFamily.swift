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
}
