import CGattherdProfile
public import GattherdGATT

/// The part of an advertisement that a profile decodes.
public enum AdvertisedData: Hashable, Sendable {
    /// Manufacturer-specific data of a company, without the two bytes of its identifier.
    case manufacturer(UInt16)
    /// Service data, without the bytes of the UUID.
    case service(BluetoothUUID)
}

/// Options of an advertisement.
public struct AdvertisementOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Each payload has a number, which the decoder reports with ``Samples/emitCounter(_:)``.
    public static let counted = Self(rawValue: GATTHERD_COUNTED)
    /// The metrics are all that the format defines; a device sends a few of them.
    public static let open = Self(rawValue: GATTHERD_OPEN)
}

/// An advertisement that a profile decodes, and the stream of its readings.
public struct ProfileAdvertisement<Profile: NativeProfile>: Sendable {
    let data: AdvertisedData
    let stream: String
    let metrics: [Metric]
    let name: String?
    let beginning: String?
    let size: ClosedRange<Int>?
    let options: AdvertisementOptions
    let silence: Duration?
    let renewal: Duration?
    let tests: [DecodingTest]
    let decode: StreamDecoder<Profile>

    /// Creates an advertisement with a stateless decoder.
    ///
    /// - Parameters:
    ///   - data: The part of the advertisement.
    ///   - stream: The stream's name, `snake_case`.
    ///   - name: The device's name, in which `*` stands for any text; `nil` for any name.
    ///   - beginning: The first bytes, such as `A5 ??`; other payloads are ignored.
    ///   - size: The length in bytes. Of several advertisements that begin alike, the one that fits is used.
    ///   - options: Options such as ``AdvertisementOptions/counted``.
    ///   - silence: The silence after which the device is offline, from 1 s to 30 days; `nil` for 5 minutes.
    ///   - renewal: The time after which equal bytes are a new reading, from 1 s to 30 days; `nil` for 1 minute.
    ///   - tests: Tests for `gattherd profile test`, at most 64.
    ///   - decode: Decodes a payload and emits its samples; a thrown error rejects the payload.
    public init<Metrics: MetricSet>(
        _ data: AdvertisedData,
        stream: String,
        name: String? = nil,
        begins beginning: String? = nil,
        size: ClosedRange<Int>? = nil,
        _ options: AdvertisementOptions = [],
        silence: Duration? = nil,
        renewal: Duration? = nil,
        tests: [DecodingTest] = [],
        decode: @escaping @Sendable (inout PayloadCursor, Samples<Metrics>) throws(PayloadError) -> Void
    ) {
        self.init(
            data,
            stream: stream,
            name: name,
            begins: beginning,
            size: size,
            options,
            silence: silence,
            renewal: renewal,
            tests: tests
        ) { (_, payload, samples) throws(PayloadError) in
            try decode(&payload, samples)
        }
    }

    /// Creates an advertisement whose decoder uses the state of the device.
    ///
    /// - Parameters:
    ///   - data: The part of the advertisement.
    ///   - stream: The stream's name, `snake_case`.
    ///   - name: The device's name, in which `*` stands for any text; `nil` for any name.
    ///   - beginning: The first bytes, such as `A5 ??`; other payloads are ignored.
    ///   - size: The length in bytes. Of several advertisements that begin alike, the one that fits is used.
    ///   - options: Options such as ``AdvertisementOptions/counted``.
    ///   - silence: The silence after which the device is offline, from 1 s to 30 days; `nil` for 5 minutes.
    ///   - renewal: The time after which equal bytes are a new reading, from 1 s to 30 days; `nil` for 1 minute.
    ///   - tests: Tests for `gattherd profile test`, at most 64.
    ///   - decode: As in the other initializer, with the profile's instance as first argument.
    public init<Metrics: MetricSet>(
        _ data: AdvertisedData,
        stream: String,
        name: String? = nil,
        begins beginning: String? = nil,
        size: ClosedRange<Int>? = nil,
        _ options: AdvertisementOptions = [],
        silence: Duration? = nil,
        renewal: Duration? = nil,
        tests: [DecodingTest] = [],
        decode: @escaping @Sendable (inout Profile, inout PayloadCursor, Samples<Metrics>) throws(PayloadError) -> Void
    ) {
        self.data = data
        self.stream = stream
        self.name = name
        self.beginning = beginning
        self.size = size
        self.options = options
        self.silence = silence
        self.renewal = renewal
        self.tests = tests
        metrics = Metrics.allCases.map(\.metric)
        self.decode = { (profile, payload, sink) throws(PayloadError) in
            try decode(&profile, &payload, Samples<Metrics>(sink))
        }
    }

    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_advertisement>? {
        var raw = unsafe gattherd_advertisement()
        unsafe raw.struct_size = UInt32(MemoryLayout<gattherd_advertisement>.size)
        switch data {
        case .manufacturer(let company):
            unsafe raw.source = GATTHERD_MANUFACTURER_DATA
            unsafe raw.company = UInt32(company)
        case .service(let uuid):
            unsafe raw.source = GATTHERD_SERVICE_DATA
            unsafe raw.uuid = memory.text(uuid.canonical)
        }
        let metrics = unsafe metrics.map { unsafe $0.table(in: &memory) }
        let tests = unsafe tests.map { unsafe memory.text($0.text) }
        unsafe raw.flags = options.rawValue
        unsafe raw.metric_count = UInt32(metrics.count)
        unsafe raw.metrics = memory.array(metrics)
        unsafe raw.size_min = UInt32(clamping: size?.lowerBound ?? 0)
        unsafe raw.size_max = UInt32(clamping: size?.upperBound ?? 0)
        unsafe raw.test_count = UInt32(tests.count)
        unsafe raw.tests = memory.array(tests)
        unsafe raw.stream = memory.text(stream)
        unsafe raw.name = memory.text(name)
        unsafe raw.begins = memory.text(beginning)
        unsafe raw.silence_milliseconds = silence?.milliseconds ?? 0
        unsafe raw.renewal_milliseconds = renewal?.milliseconds ?? 0
        return unsafe memory.value(raw)
    }
}

/// A device that advertises.
public struct AdvertisementSender: Hashable, Sendable {
    public let address: BluetoothAddress
    /// The device's bind key, 16 bytes; `nil` if none is configured.
    public let key: [UInt8]?

    public init(address: BluetoothAddress, key: [UInt8]? = nil) {
        self.address = address
        self.key = key
    }

    init(_ raw: gattherd_sender) {
        let (a, b, c, d, e, f) = unsafe raw.address
        let value = [a, b, c, d, e, f].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        address = BluetoothAddress(value: value)
        let key = unsafe raw.key.map { key in
            unsafe Array(UnsafeBufferPointer(start: key, count: Int(raw.key_size)))
        }
        self.key = key
    }

    /// Calls `body` with the sender as C type; with `nil` for none.
    static func withTable<Result>(
        _ sender: AdvertisementSender?,
        _ body: (UnsafePointer<gattherd_sender>?) -> Result
    ) -> Result {
        guard let sender else { return body(nil) }
        return unsafe (sender.key ?? []).withUnsafeBufferPointer { key in
            var raw = unsafe gattherd_sender()
            unsafe raw.struct_size = UInt32(MemoryLayout<gattherd_sender>.size)
            unsafe raw.key_size = UInt32(clamping: key.count)
            unsafe raw.key = sender.key == nil ? nil : key.baseAddress
            let octet = { (shift: UInt64) in UInt8(truncatingIfNeeded: sender.address.value >> shift) }
            unsafe raw.address = (octet(40), octet(32), octet(24), octet(16), octet(8), octet(0))
            return unsafe body(&raw)
        }
    }
}
