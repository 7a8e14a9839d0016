import FoundationEssentials
public import GattherdModel
import GattherdSync

/// A request of the command line to the daemon: one JSON object on one line.
public enum ControlCall: Codable, Hashable, Sendable {
    case status
    case connect(device: String)
    case disconnect(device: String)
    case set(device: String, control: String, value: String)
    /// Reads the configuration again; answered after it was applied or refused.
    case reload
    case bonds
    /// Removes the bond of a device, by name or address.
    case forgetBond(String)
    /// Returns the GATT table of a device, by name or address, over the daemon's link.
    ///
    /// A device that is backing off is connected first.
    case table(device: String)
    /// Reads a characteristic or descriptor by its handle in the table.
    case read(device: String, attribute: String)
    /// Writes a characteristic by its handle in the table.
    case write(device: String, attribute: String, hex: String, withResponse: Bool)
    /// Sends every notified or indicated value until the client closes its side or the link ends.
    ///
    /// The replies are ``ControlReply/watching``, any number of ``ControlReply/value(_:)``, and the cause of the end.
    case watch(device: String, attribute: String)

    /// True for requests that wait for files, bluetoothd or devices; others are answered from memory.
    var mayTakeLong: Bool {
        switch self {
        case .status: false
        case .connect, .disconnect, .set, .reload, .bonds, .forgetBond, .table, .read, .write, .watch: true
        }
    }
}

/// A reply of the daemon: one JSON object on one line.
public enum ControlReply: Codable, Hashable, Sendable {
    case status(DaemonStatus)
    case bonds([BondStatus])
    /// Success, with text for people.
    case done(String)
    case refused(String)
    /// The files of a reload were not read in time; with the reason for people.
    case unread(String)
    case table(GATTTableReply)
    /// The daemon neither has a link to the device nor tries to make one; with the reason for people.
    case notServed(String)
    case watching
    case value(DeviceValue)
    /// A GATT operation failed.
    case failed(DeviceFailure)
}

/// A message on the control socket: one JSON object on one line.
protocol ControlMessage: Codable {}

extension ControlCall: ControlMessage {}
extension ControlReply: ControlMessage {}

extension ControlMessage {
    /// Reads a line without its line break; `nil` if it is no such message, for example one of another version.
    init?(line: [UInt8]) {
        guard let message = try? JSONDecoder().decode(Self.self, from: Data(line)) else { return nil }
        self = message
    }

    /// The message with its line break.
    var line: [UInt8] {
        let json = (try? JSONEncoder().encode(self)) ?? Data()
        return Array(json) + [UInt8(ascii: "\n")]
    }
}

/// The connection to a client that receives several replies to one request.
public struct ControlStream: Sendable {
    /// Sends a reply that is not the last one.
    public let send: @Sendable (ControlReply) -> Void
    /// True as soon as the client has closed its side of the connection.
    let hangUp: LatestValue<Bool>

    /// Returns when the client closes its side or the caller is cancelled.
    public func waitForHangUp() async {
        for await hasHungUp in hangUp.watch() where hasHungUp { return }
    }
}
