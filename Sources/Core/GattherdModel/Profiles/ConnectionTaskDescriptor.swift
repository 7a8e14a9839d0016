public import GattherdGATT

/// An operation at each connect, after subscribing and before reading values.
public struct ConnectionTaskDescriptor: Hashable, Sendable {
    public enum Action: Hashable, Sendable {
        /// Subscribes and discards the values, for devices that need a subscriber to start.
        case listen
        /// Writes bytes and waits for the response, if a rule is given.
        case write(WriteTemplate, isAcknowledged: Bool, answer: ResponseRule?)
    }

    /// The service that contains the characteristic; `nil` for any service of the profile.
    public var service: BluetoothUUID?
    public var characteristic: BluetoothUUID
    public var action: Action
    /// True if the link fails when the task fails.
    public var isRequired: Bool
    /// The rule to continue after the newest stored record; `nil` to always write the same.
    public var resume: ResumeRule?

    public init(
        service: BluetoothUUID? = nil,
        characteristic: BluetoothUUID,
        action: Action,
        isRequired: Bool = false,
        resume: ResumeRule? = nil
    ) {
        self.service = service
        self.characteristic = characteristic
        self.action = action
        self.isRequired = isRequired
        self.resume = resume
    }
}

extension ConnectionTaskDescriptor {
    /// Returns the task with the values of options in its bytes.
    package func resolved(_ option: (String) -> Int64?) -> ConnectionTaskDescriptor {
        guard case .write(let template, let isAcknowledged, let answer) = action else { return self }
        var resolved = self
        resolved.action = .write(template.resolved(option), isAcknowledged: isAcknowledged, answer: answer)
        return resolved
    }
}

/// A rule to request only the records after the newest stored one.
public struct ResumeRule: Hashable, Sendable {
    /// The stream of the same profile that has the record number.
    public var stream: String
    /// The index of the record number, an integer metric, in the stream's metrics.
    public var metric: Int
    /// The bytes before the next record number.
    public var prefix: [UInt8]
    /// The width of the little-endian record number, 1 to 7 bytes.
    public var width: Int
    /// The checksum that is added to both.
    public var checksum: Checksum?

    public init(stream: String, metric: Int, prefix: [UInt8], width: Int) {
        self.stream = stream
        self.metric = metric
        self.prefix = prefix
        self.width = width
    }

    /// Returns the request for records after `newest`; `nil` if the next number or the checksum does not fit.
    public func octets(after newest: Int64) -> [UInt8]? {
        let (next, overflow) = newest.addingReportingOverflow(1)
        guard !overflow, (1...7).contains(width), (0..<1 << Int64(8 * width)).contains(next) else { return nil }
        var writer = PayloadWriter()
        writer.append(prefix)
        writer.append(UInt64(next), octets: width)
        return checksum.map { $0.inserted(into: writer.octets) } ?? writer.octets
    }
}

/// A rule to recognise a device's response to a write, a notification or an indication.
public struct ResponseRule: Hashable, Sendable {
    /// The meaning of a response.
    public enum Outcome: Hashable, Sendable {
        case success
        /// The device refused, for this reason.
        case refusal(String)
    }

    /// A response pattern and its meaning.
    public struct Case: Hashable, Sendable {
        public var pattern: BytePattern
        public var outcome: Outcome

        public init(_ pattern: BytePattern, _ outcome: Outcome) {
            self.pattern = pattern
            self.outcome = outcome
        }
    }

    /// The service of the responding characteristic; `nil` for any service of the profile.
    public var service: BluetoothUUID?
    /// The responding characteristic.
    public var characteristic: BluetoothUUID
    /// The cases, in order; the first match applies.
    public var cases: [Case]
    /// The response timeout.
    public var timeout: Duration

    public init(
        service: BluetoothUUID? = nil,
        characteristic: BluetoothUUID,
        cases: [Case],
        timeout: Duration = .seconds(5)
    ) {
        self.service = service
        self.characteristic = characteristic
        self.cases = cases
        self.timeout = timeout
    }

    /// Returns the meaning of a value; `nil` if it is not a response.
    public func outcome(of octets: [UInt8]) -> Outcome? {
        cases.first { $0.pattern.fits(octets) }?.outcome
    }
}
