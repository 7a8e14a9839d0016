import CGattherdProfile
public import GattherdGATT

/// An operation at each connect.
public struct ProfileTask: Sendable {
    enum Action: Sendable {
        case listen
        case write([UInt8], isAcknowledged: Bool, answer: Answer?, resume: ResumePoint?)
    }

    let action: Action
    let characteristic: BluetoothUUID
    let service: BluetoothUUID?
    let isRequired: Bool

    /// Writes bytes, and waits for the device's answer if one is given.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to write, at most 512.
    ///   - characteristic: The characteristic to write.
    ///   - service: The service that contains it; `nil` for any service of the profile.
    ///   - isAcknowledged: True to write with response.
    ///   - answer: The device's response; `nil` if none is awaited.
    ///   - isRequired: True if the link fails when the task fails; otherwise the failure is an event.
    ///   - resume: The request for only the records that are not stored yet, instead of `bytes`.
    /// - Returns: The task.
    public static func write(
        _ bytes: [UInt8],
        to characteristic: BluetoothUUID,
        in service: BluetoothUUID? = nil,
        isAcknowledged: Bool = true,
        answer: Answer? = nil,
        isRequired: Bool = false,
        resume: ResumePoint? = nil
    ) -> Self {
        ProfileTask(
            action: .write(bytes, isAcknowledged: isAcknowledged, answer: answer, resume: resume),
            characteristic: characteristic,
            service: service,
            isRequired: isRequired
        )
    }

    /// Subscribes and discards the values, for devices that wait for a subscriber.
    public static func listen(
        to characteristic: BluetoothUUID,
        in service: BluetoothUUID? = nil,
        isRequired: Bool = false
    ) -> Self {
        ProfileTask(action: .listen, characteristic: characteristic, service: service, isRequired: isRequired)
    }

    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_task>? {
        var raw = unsafe gattherd_task()
        unsafe raw.struct_size = UInt32(MemoryLayout<gattherd_task>.size)
        unsafe raw.flags = isRequired ? GATTHERD_TASK_REQUIRED : 0
        unsafe raw.uuid = memory.text(characteristic.canonical)
        unsafe raw.service = memory.text(service?.canonical)
        switch action {
        case .listen:
            unsafe raw.kind = GATTHERD_TASK_LISTEN
        case .write(let bytes, let isAcknowledged, let answer, let resume):
            unsafe raw.kind = GATTHERD_TASK_WRITE
            if !isAcknowledged { unsafe raw.flags |= GATTHERD_WRITE_WITHOUT_RESPONSE }
            unsafe raw.size = UInt32(bytes.count)
            unsafe raw.bytes = memory.array(bytes)
            unsafe raw.answer = answer?.table(in: &memory)
            unsafe raw.resume = resume?.table(in: &memory)
        }
        return unsafe memory.value(raw)
    }
}

/// The response of a device to a write, as a notification or an indication.
///
/// The responding characteristic is subscribed before the write. Its other values are ignored.
public struct Answer: Sendable {
    private let responses: [(pattern: String, refusal: String?)]
    private let characteristic: BluetoothUUID?
    private let service: BluetoothUUID?
    private let limit: Duration

    /// - Parameters:
    ///   - patterns: The first bytes of responses that mean success, such as `81 00`; `??` is any byte.
    ///   - refusals: The first bytes of other responses and their meanings; the first match counts. Together at most
    ///     64 patterns.
    ///   - characteristic: The characteristic that responds; `nil` for the one that is written.
    ///   - service: The service that contains it; `nil` for any service of the profile.
    ///   - limit: The longest wait, from 100 ms to 5 minutes.
    public init(
        ok patterns: String...,
        refusals: KeyValuePairs<String, String> = [:],
        from characteristic: BluetoothUUID? = nil,
        in service: BluetoothUUID? = nil,
        within limit: Duration = .seconds(5)
    ) {
        responses = patterns.map { ($0, nil) } + refusals.map { ($0.key, $0.value) }
        self.characteristic = characteristic
        self.service = service
        self.limit = limit
    }

    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_answer>? {
        let entries: [UnsafePointer<gattherd_response>?] = unsafe responses.map { response in
            unsafe memory.value(
                gattherd_response(
                    struct_size: UInt32(MemoryLayout<gattherd_response>.size),
                    reserved: 0,
                    pattern: memory.text(response.pattern),
                    refusal: memory.text(response.refusal)
                )
            )
        }
        return unsafe memory.value(
            gattherd_answer(
                struct_size: UInt32(MemoryLayout<gattherd_answer>.size),
                response_count: UInt32(entries.count),
                uuid: memory.text(characteristic?.canonical),
                service: memory.text(service?.canonical),
                responses: memory.array(entries),
                within_milliseconds: limit.milliseconds
            )
        )
    }
}

/// A request for the records after the newest stored one.
///
/// Once the stream has had a value since the daemon started, the task writes the prefix and the number after the
/// newest value, little-endian.
public struct ResumePoint: Sendable {
    private let stream: String
    private let metric: Int
    private let prefix: [UInt8]
    private let width: Int

    /// - Parameters:
    ///   - metric: The record number, an integer metric of the stream.
    ///   - stream: A stream of the profile.
    ///   - prefix: The bytes before the record number, at most 504.
    ///   - width: The number of bytes of the record number, 1 to 7.
    public init<Metrics: MetricSet>(after metric: Metrics, of stream: String, prefix: [UInt8], width: Int) {
        self.stream = stream
        self.metric = metric.rawValue
        self.prefix = prefix
        self.width = width
    }

    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_resume>? {
        unsafe memory.value(
            gattherd_resume(
                struct_size: UInt32(MemoryLayout<gattherd_resume>.size),
                metric: UInt32(clamping: metric),
                stream: memory.text(stream),
                prefix: memory.array(prefix),
                prefix_size: UInt32(prefix.count),
                width: UInt32(clamping: width)
            )
        )
    }
}
