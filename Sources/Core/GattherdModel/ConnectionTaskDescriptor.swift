public import GattherdGATT

/// What a profile wants done at each connect, after the subscriptions and before values are read.
public struct ConnectionTaskDescriptor: Hashable, Sendable {
    public enum Action: Hashable, Sendable {
        /// Enable notifications or indications and throw away what comes: some devices do nothing before.
        case listen
        /// Write octets, and wait for the answer where there is one.
        case write([UInt8], isAcknowledged: Bool, answer: ResponseRule?)
    }

    /// The service that the characteristic must be part of; `nil` for any of the profile's.
    public var service: BluetoothUUID?
    public var characteristic: BluetoothUUID
    public var action: Action
    /// A device for which the task fails cannot be served.
    public var isRequired: Bool
    /// What is written instead once something is known; `nil`: always the same.
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

/// How a task goes on after what the device has told already, instead of having it all told again.
public struct ResumeRule: Hashable, Sendable {
    /// The stream of the same profile that shows how far the device has come.
    public var stream: String
    /// The position of the metric, a whole number, in the stream's list.
    public var metric: Int
    /// What is written before the number that follows the newest one.
    public var prefix: [UInt8]
    /// How many octets that number has, 1 to 7; the least significant comes first.
    public var width: Int

    public init(stream: String, metric: Int, prefix: [UInt8], width: Int) {
        self.stream = stream
        self.metric = metric
        self.prefix = prefix
        self.width = width
    }

    /// What to write when `newest` was told last; `nil` when the number after it has more octets.
    public func octets(after newest: Int64) -> [UInt8]? {
        let (next, overflow) = newest.addingReportingOverflow(1)
        guard !overflow, (1...7).contains(width), (0..<1 << Int64(8 * width)).contains(next) else { return nil }
        var writer = PayloadWriter()
        writer.append(prefix)
        writer.append(UInt64(next), octets: width)
        return writer.octets
    }
}

/// How a device answers something that was written to it: by a notification or an indication.
public struct ResponseRule: Hashable, Sendable {
    /// What an answer means.
    public enum Verdict: Hashable, Sendable {
        case success
        /// Why the device does not do it.
        case refusal(String)
    }

    /// How an answer begins, and what that means.
    public struct Case: Hashable, Sendable {
        public var pattern: BytePattern
        public var verdict: Verdict

        public init(_ pattern: BytePattern, _ verdict: Verdict) {
            self.pattern = pattern
            self.verdict = verdict
        }
    }

    /// The service of the characteristic that answers; `nil` for any of the profile's.
    public var service: BluetoothUUID?
    /// The characteristic that answers.
    public var characteristic: BluetoothUUID
    /// The first that fits counts.
    public var cases: [Case]
    /// The longest time that an answer takes.
    public var patience: Duration

    public init(
        service: BluetoothUUID? = nil,
        characteristic: BluetoothUUID,
        cases: [Case],
        patience: Duration = .seconds(5)
    ) {
        self.service = service
        self.characteristic = characteristic
        self.cases = cases
        self.patience = patience
    }

    /// What a value means as an answer; `nil` when it is about something else.
    public func verdict(on octets: [UInt8]) -> Verdict? {
        cases.first { $0.pattern.fits(octets) }?.verdict
    }
}

/// The beginning of a value, of which some octets do not matter.
public struct BytePattern: Hashable, Sendable {
    /// `nil` for any octet.
    private let octets: [UInt8?]

    /// Reads `80 05 ??`; `nil` for anything else, and for nothing.
    public init?(_ text: some StringProtocol) {
        let words = text.split(separator: " ")
        let octets = words.map { $0 == "??" ? [nil] : Hexadecimal.octets($0).map { $0.map(Optional.some) } }
        guard !words.isEmpty, octets.allSatisfy({ $0 != nil }) else { return nil }
        self.octets = octets.flatMap { $0 ?? [] }
    }

    /// True when `value` begins like this.
    public func fits(_ value: [UInt8]) -> Bool {
        value.count >= octets.count && zip(octets, value).allSatisfy { $0 == nil || $0 == $1 }
    }
}

extension BytePattern: CustomStringConvertible {
    /// As it is read: `80 05 ??`.
    public var description: String {
        octets.map { octet in octet.map { Hexadecimal.text([$0].span) } ?? "??" }.joined(separator: " ")
    }
}
