public import GattherdGATT

/// Requests that are written at an interval; the device notifies the answers as values of the stream.
public struct PollRule: Hashable, Sendable {
    /// The service that contains the characteristic; `nil` for any service of the profile.
    public var service: BluetoothUUID?
    /// The characteristic to write.
    public var characteristic: BluetoothUUID
    /// The requests, in order; each follows the answer to the one before.
    public var requests: [WriteTemplate]
    /// The time between two rounds.
    public var period: Duration
    /// The longest wait for an answer.
    public var timeout: Duration
    /// False to write without response; `nil` for the way that the characteristic supports.
    public var isAcknowledged: Bool?

    public init(
        service: BluetoothUUID? = nil,
        characteristic: BluetoothUUID,
        requests: [WriteTemplate],
        period: Duration,
        timeout: Duration = .seconds(5),
        isAcknowledged: Bool? = nil
    ) {
        self.service = service
        self.characteristic = characteristic
        self.requests = requests
        self.period = period
        self.timeout = timeout
        self.isAcknowledged = isAcknowledged
    }

    /// The time without an answer after which the link is probed: three rounds.
    public var silence: Duration { max(period, timeout * requests.count) * 3 }
}
