import FoundationEssentials
public import GattherdModel

/// What the command line asks the running daemon, one JSON object on one line.
public enum ControlCall: Codable, Hashable, Sendable {
    case status
    case connect(device: String)
    case disconnect(device: String)
    case set(device: String, control: String, value: String)
    /// Answered once the configuration has been read, and taken or not.
    case reload
    case bonds
    /// A device's name, or an address.
    case forgetBond(String)
    /// The GATT table of a device, by name or address, over the daemon's own link; a device in a pause is connected first.
    case table(device: String)
    /// Reads a characteristic or descriptor, by its handle in the table.
    case read(device: String, attribute: String)
    /// Writes a characteristic, by its handle in the table.
    case write(device: String, attribute: String, hex: String, withResponse: Bool)
    /// Every value that a characteristic notifies or indicates, until the client closes its side or the link ends.
    ///
    /// The answers are ``ControlReply/watching``, any number of ``ControlReply/value(_:)``, and what ended it.
    case watch(device: String, attribute: String)
}

/// The daemon's answer, one JSON object on one line.
public enum ControlReply: Codable, Hashable, Sendable {
    case status(DaemonStatus)
    case bonds([BondStatus])
    /// Done; the words are for people.
    case done(String)
    case refused(String)
    case table(DeviceTable)
    /// The daemon neither has a link to that device nor tries to make one; the reason is for people.
    case notServed(String)
    case watching
    case value(DeviceValue)
    /// A GATT operation failed.
    case failed(DeviceFailure)
}

extension ControlReply {
    /// The reply as the socket carries it.
    var line: [UInt8] {
        let json = (try? JSONEncoder().encode(self)) ?? Data()
        return Array(json) + [UInt8(ascii: "\n")]
    }
}
