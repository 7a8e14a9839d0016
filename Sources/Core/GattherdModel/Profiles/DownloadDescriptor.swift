public import GattherdGATT

/// The way to download the stored records of a stream after each connect.
public struct DownloadDescriptor: Hashable, Sendable {
    /// The procedure by which the records are requested and sent.
    public enum Procedure: Hashable, Sendable {
        /// The Record Access Control Point of the Bluetooth SIG.
        ///
        /// `width` is the number of octets of a record number in a filter; 0 if the device cannot filter by it.
        case accessControlPoint(width: Int)
        /// A request that is answered by notifications: up to one that starts with these bytes, or up to a pause.
        case request(WriteTemplate, end: BytePattern?)
        /// Requests by index, each answered by a block of records, which is notified or read.
        case blocks(WriteTemplate, first: Int64, isRead: Bool)
    }

    /// The device's clock, read before the download.
    public struct Clock: Hashable, Sendable {
        public enum Format: Hashable, Sendable {
            /// Date Time or Current Time of the Bluetooth SIG, in the device's own zone.
            case date
            /// A little-endian count of this unit.
            case count(octets: Int, unit: Duration)
        }

        public var characteristic: BluetoothUUID
        public var format: Format
        /// True if the value is the start time of the requested records, not the current time.
        public var isStart: Bool

        public init(
            characteristic: BluetoothUUID,
            format: Format = .date,
            isStart: Bool = false
        ) {
            (self.characteristic, self.format, self.isStart) = (characteristic, format, isStart)
        }
    }

    /// The stream of the same profile whose values are the records.
    public var stream: String
    public var service: BluetoothUUID?
    /// The characteristic that is written.
    public var characteristic: BluetoothUUID
    public var procedure: Procedure
    /// True if the writes expect a response of the link layer.
    public var isAcknowledged = true
    /// The characteristic that ends a request, if it is another one than that of the stream.
    public var answers: BluetoothUUID?
    public var clock: Clock?
    /// The time without a record or an answer after which a request has failed.
    public var timeout = Duration.seconds(30)
    /// The time between two downloads on one link; `nil` for one download.
    public var period: Duration?

    public init(
        stream: String,
        service: BluetoothUUID? = nil,
        characteristic: BluetoothUUID,
        procedure: Procedure
    ) {
        (self.stream, self.service) = (stream, service)
        (self.characteristic, self.procedure) = (characteristic, procedure)
    }
}

extension DownloadDescriptor {
    /// Returns the download with the values of options in its requests.
    package func resolved(_ option: (String) -> Int64?) -> DownloadDescriptor {
        var resolved = self
        switch procedure {
        case .accessControlPoint: break
        case .request(let template, let end): resolved.procedure = .request(template.resolved(option), end: end)
        case .blocks(let template, let first, let isRead):
            resolved.procedure = .blocks(template.resolved(option), first: first, isRead: isRead)
        }
        return resolved
    }
}
