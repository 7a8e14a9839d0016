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
}

/// The daemon's answer, one JSON object on one line.
public enum ControlReply: Codable, Hashable, Sendable {
    case status(DaemonStatus)
    case bonds([BondStatus])
    /// Done; the words are for people.
    case done(String)
    case refused(String)
}

extension ControlReply {
    /// The reply as the socket carries it.
    var line: [UInt8] {
        let json = (try? JSONEncoder().encode(self)) ?? Data()
        return Array(json) + [UInt8(ascii: "\n")]
    }
}
