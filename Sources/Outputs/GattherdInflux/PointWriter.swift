public import GattherdModel

/// Formats readings as points of line protocol; the same reading always gives the same points.
///
/// A reading is one point with a field for each metric. Each value of a repeated metric is a point of its own, with the
/// tag `element`.
public struct PointWriter: Sendable {
    /// Measurement and tags that all points of a stream share.
    private struct Head: Sendable {
        /// Keeps the stream alive, so that its identifier is not used again.
        let stream: StreamDefinition
        var beforeElement: [UInt8] = []
        var beforeSource: [UInt8] = []
        var afterSource: [UInt8] = []
    }

    private static let maximumHeads = 4096

    private let gateway: String
    private let measurement: MeasurementName
    private var heads: [ObjectIdentifier: Head] = [:]

    public init(gateway: String, measurement: MeasurementName) {
        self.gateway = gateway
        self.measurement = measurement
    }

    /// Appends the points of a reading; none if it has only unknown values.
    ///
    /// - Returns: False if InfluxDB cannot represent the time.
    public mutating func write(_ reading: JournalReading, to bytes: inout [UInt8]) -> Bool {
        guard let time = Self.nanoseconds(reading) else { return false }
        let (head, source, metrics) = (head(reading.stream), reading.source.rawValue, reading.stream.metrics)
        var fields: [UInt8] = []
        var known = Set<Int>()
        var elements: [Int: Int] = [:]
        for sample in reading.samples where metrics.indices.contains(sample.metric) {
            let metric = metrics[sample.metric]
            let field = FieldValue.field(metric.name, sample.value)
            if metric.isRepeated {
                let element = elements[sample.metric, default: 0]
                elements[sample.metric] = element + 1
                if let field { Self.write(head, element: element, source, field, time, to: &bytes) }
            } else if let field, known.insert(sample.metric).inserted {
                if !fields.isEmpty { fields.append(UInt8(ascii: ",")) }
                fields += field
            }
        }
        if !fields.isEmpty { Self.write(head, element: nil, source, fields, time, to: &bytes) }
        return true
    }

    private static func write(
        _ head: Head,
        element: Int?,
        _ source: String,
        _ fields: [UInt8],
        _ time: Int64,
        to bytes: inout [UInt8]
    ) {
        bytes += head.beforeElement
        if let element { bytes += ",element=\(element)".utf8 }
        bytes += head.beforeSource
        bytes += ",source=\(source)".utf8
        bytes += head.afterSource
        bytes.append(UInt8(ascii: " "))
        bytes += fields
        bytes += " \(time)\n".utf8
    }

    /// Returns the measurement and tags of a stream's points; tags are ordered by name, as InfluxDB recommends.
    private mutating func head(_ stream: StreamDefinition) -> Head {
        if let head = heads[ObjectIdentifier(stream)] { return head }
        var head = Head(stream: stream)
        LineProtocol.measure(measurement.name(for: stream), to: &head.beforeElement)
        Self.write("device", stream.device, to: &head.beforeElement)
        Self.write("gateway", gateway, to: &head.beforeSource)
        Self.write("profile", stream.profile, to: &head.beforeSource)
        if measurement.needsStreamTag { Self.write("stream", stream.stream, to: &head.afterSource) }
        if heads.count >= Self.maximumHeads { heads.removeAll() }
        heads[ObjectIdentifier(stream)] = head
        return head
    }

    private static func write(_ tag: String, _ value: String, to bytes: inout [UInt8]) {
        guard !value.isEmpty else { return }
        bytes += ",\(tag)=".utf8
        LineProtocol.escape(value, to: &bytes)
    }

    /// Returns the time in nanoseconds since 1970; `nil` if it is out of InfluxDB's range, the years 1678 to 2261.
    ///
    /// Readings have microseconds. The number of the reading in the journal, modulo 1000, is added as nanoseconds:
    /// readings of one stream at the same microsecond are different points, and a repeated reading is the same point.
    static func nanoseconds(_ reading: JournalReading) -> Int64? {
        let (product, overflow) = reading.time.microseconds.multipliedReportingOverflow(by: 1000)
        let (sum, overflow2) = product.addingReportingOverflow(Int64(reading.seq.magnitude % 1000))
        let mayBeUsed = !overflow && !overflow2 && sum > .min + 2 && sum < .max - 1
        return mayBeUsed ? sum : nil
    }
}
