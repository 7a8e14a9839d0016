import CGattherdProfile
public import GattherdGATT

/// A connection, or a device that advertises, for tests of a profile, driven through the C table as gattherd does.
@safe public final class ProfileTester {
    /// The value of a sample.
    public enum Value: Hashable, Sendable {
        case integer(Int64)
        case real(Double)
        case boolean(Bool)
        case text(String)
        case unknown
    }

    /// A value of a metric.
    public struct Sample: Hashable, Sendable {
        public let metric: String
        public let value: Value

        public init(_ metric: String, _ value: Value) {
            self.metric = metric
            self.value = value
        }
    }

    private let exported: ExportedProfile
    private let streams: [(name: String, metrics: [Metric])]
    private let controls: [String]
    private let session: UnsafeMutableRawPointer?
    private var counters: [Int: UInt32] = [:]

    /// Starts a connection.
    ///
    /// - Parameters:
    ///   - type: The profile.
    ///   - sender: The device that advertises; `nil` for a connection.
    public init<Profile: NativeProfile>(_ type: Profile.Type, from sender: AdvertisementSender? = nil) {
        streams =
            Profile.characteristics.map { ($0.stream, $0.metrics) }
            + Profile.advertisements.map { ($0.stream, $0.metrics) }
        controls = Profile.controls.map(\.name)
        exported = ExportedProfile(type)
        let raw = unsafe exported.raw
        unsafe session = AdvertisementSender.withTable(sender) { sender in
            unsafe raw.pointee.session_create?(raw.pointee.context, sender)
        }
    }

    deinit {
        unsafe exported.raw.pointee.session_destroy?(session)
    }

    /// Decodes one payload of `stream`.
    ///
    /// - Returns: The samples; none for an advertisement with the number of the one before.
    /// - Throws: ``GattherdGATT/PayloadError`` with the reason of the reject.
    public func decode(_ payload: [UInt8], stream: String) throws(PayloadError) -> [Sample] {
        guard let index = streams.firstIndex(where: { $0.name == stream }) else {
            throw .invalid(reason: "the profile has no stream '\(stream)'")
        }
        let record = RecordingSink(streams[index].metrics)
        let status = unsafe record.withSink { sink in
            unsafe payload.withUnsafeBufferPointer { payload in
                unsafe exported.raw.pointee.decode(session, UInt32(index), payload.baseAddress, payload.count, sink)
            }
        }
        if let violation = record.violation { throw .invalid(reason: violation) }
        guard status == GATTHERD_OK else { throw .invalid(reason: record.reason) }
        guard let counter = record.counter else { return record.samples }
        return counters.updateValue(counter, forKey: index) == counter ? [] : record.samples
    }

    /// Encodes a value for `control`: the number, 0 or 1, or the index of the label.
    ///
    /// - Throws: ``GattherdGATT/PayloadError`` with the profile's reason.
    public func encode(_ integer: Int64 = 0, real: Double = 0, control: String) throws(PayloadError) -> [UInt8] {
        guard let index = controls.firstIndex(of: control) else {
            throw .invalid(reason: "the profile has no control '\(control)'")
        }
        let record = RecordingSink([])
        var octets = [UInt8](repeating: 0, count: 512)
        var value = gattherd_control_value()
        value.integer = integer
        value.real = real
        let length = unsafe record.withSink { sink in
            unsafe octets.withUnsafeMutableBufferPointer { out in
                unsafe exported.raw.pointee.encode(
                    exported.raw.pointee.context,
                    UInt32(index),
                    &value,
                    out.baseAddress,
                    out.count,
                    sink
                )
            }
        }
        guard length >= 0 else { throw .invalid(reason: record.reason) }
        return Array(octets.prefix(Int(length)))
    }
}

/// Records the samples of one call.
final class RecordingSink {
    private let metrics: [Metric]
    private(set) var samples: [ProfileTester.Sample] = []
    private(set) var reason = ""
    /// The first violation of the contract, for which gattherd rejects the payload.
    private(set) var violation: String?
    private(set) var counter: UInt32?

    init(_ metrics: [Metric]) {
        self.metrics = metrics
    }

    func withSink(_ body: (UnsafePointer<gattherd_sink>) -> Int32) -> Int32 {
        var sink = unsafe gattherd_sink(
            struct_size: UInt32(MemoryLayout<gattherd_sink>.size),
            reserved: 0,
            context: Unmanaged.passUnretained(self).toOpaque(),
            integer: { unsafe RecordingSink.at($0)?.add($1, .integer($2)) },
            real: { unsafe RecordingSink.at($0)?.add($1, $2.isFinite ? .real($2) : .unknown) },
            boolean: { unsafe RecordingSink.at($0)?.add($1, .boolean($2 != 0)) },
            text: { unsafe RecordingSink.at($0)?.add($1, .text(RecordingSink.text($2, $3))) },
            null: { unsafe RecordingSink.at($0)?.add($1, .unknown) },
            fail: { unsafe RecordingSink.at($0)?.reason = RecordingSink.text($1, $2) },
            counter: { unsafe RecordingSink.at($0)?.counter = $1 }
        )
        return withExtendedLifetime(self) { unsafe body(&sink) }
    }

    private static func at(_ context: UnsafeMutableRawPointer?) -> RecordingSink? {
        unsafe context.map { unsafe Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    private static func text(_ utf8: UnsafePointer<CChar>?, _ size: Int) -> String {
        unsafe String(decoding: UnsafeRawBufferPointer(start: utf8, count: size), as: UTF8.self)
    }

    fileprivate func add(_ metric: UInt32, _ value: ProfileTester.Value) {
        let known = metrics.indices.contains(Int(metric)) ? metrics[Int(metric)] : nil
        let name = known?.name ?? "metric \(metric)"
        if known?.isRepeated == false, violation == nil, samples.contains(where: { $0.metric == name }) {
            violation = "the profile gave metric '\(name)' twice, but did not declare it as repeated"
        }
        samples.append(ProfileTester.Sample(name, value))
    }
}
