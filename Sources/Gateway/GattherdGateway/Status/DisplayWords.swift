import GattherdMachines
package import GattherdModel

/// Words for the identifiers of the JSON interfaces.
package enum DisplayWords {
    /// The next step of a gateway without devices, to follow "no devices".
    package static let firstStep = "find them with 'gattherd scan', then add one: gattherd add ADDRESS"

    package static func reason(_ name: String) -> String { LinkReason(rawValue: name)?.words ?? plain(name) }

    package static func state(_ name: String) -> String { plain(name) }

    package static func step(_ name: String) -> String {
        switch RecoveryLadder.Step(rawValue: name) {
        case .restartDiscovery: "the scan was restarted"
        case .newBusConnection: "gattherd came back to the bus as a new client"
        case .powerCycle: "it was switched off and on"
        default: plain(name)
        }
    }

    package static func symptom(_ name: String) -> String {
        switch RecoveryLadder.Symptom(rawValue: name) {
        case .silence: "it heard nothing"
        case .wedge: "it connected no device"
        case .stall: "its links stopped answering"
        default: plain(name)
        }
    }

    /// Returns the words for the state of an output.
    package static func output(_ state: String) -> String {
        state == OutputStatus.State.waiting.rawValue ? "failing" : plain(state)
    }

    /// Returns words as a list: `a`, `a and b`, `a, b and c`.
    package static func list(_ words: [String]) -> String {
        guard let last = words.last, words.count > 1 else { return words.first ?? "" }
        return "\(words.dropLast().joined(separator: ", ")) and \(last)"
    }

    /// Returns `backingOff` as `backing off`.
    package static func plain(_ name: String) -> String {
        var text = ""
        for character in name {
            text += character.isUppercase ? " " + character.lowercased() : String(character)
        }
        return text
    }
}

extension LinkState {
    /// The state in words, to follow a device's name.
    package var words: String {
        switch self {
        case .waiting: "waiting, not heard"
        case .connecting: "connecting"
        case .discovering: "connected, reading its services"
        case .preparing: "connected, subscribing"
        case .ready: "ready"
        case .disconnecting: "disconnecting"
        case .disconnected: "disconnected"
        case .backingOff: "backing off"
        case .held: "held: a person disconnected it"
        case .failed: "failed"
        }
    }
}

extension LinkReason {
    /// The reason in words, to follow a colon.
    package var words: String {
        switch self {
        case .requested: "as requested"
        case .timedOut: "no answer in time"
        case .remote: "the device ended the link, or the radio lost it"
        case .local: "this side ended the link"
        case .authentication: "pairing was refused"
        case .daemonLost: "bluetoothd is not running"
        case .adapterLost: "the adapter is gone"
        case .adapterPoweredOff: "the adapter is off"
        case .vanished: "BlueZ forgot the device"
        case .connectFailed: "it could not be connected"
        case .profileMismatch: "it does not match a profile"
        case .gattError: "a GATT operation failed"
        case .silent: "nothing came from it"
        case .busy: "BlueZ is busy"
        case .adapterFull: "no adapter has a free slot for it"
        case .rotated: "devices take turns, as an adapter is full"
        case .ownedElsewhere: "this gateway does not own it"
        case .unknown: "for an unknown reason"
        }
    }

    /// Returns the remedy; `nil` if only waiting helps.
    package func advice(for device: String) -> String? {
        switch self {
        case .timedOut, .connectFailed:
            "it may be connected to something else, such as a phone, or be at the edge of its range: end the other "
                + "link, or bring it or the adapter nearer"
        case .remote, .silent: "check its battery, and bring it or the adapter nearer"
        case .authentication:
            "configure the pairing it needs (devices: pairing, pin_file), put it into its pairing mode, then: "
                + "gattherd bond forget \(device)"
        case .profileMismatch: "check its 'profiles' in the configuration; see: gattherd profile list"
        case .gattError: "if it stays, restart the device, then bluetoothd: systemctl restart bluetooth"
        case .busy: "see whether another program uses the device or the adapter (bluetoothctl, a desktop)"
        case .daemonLost: "see: systemctl status bluetooth; gattherd doctor says more"
        case .adapterLost: "plug the adapter in; gattherd doctor says more"
        case .adapterPoweredOff: "switch the adapter on: bluetoothctl power on; gattherd doctor says more"
        case .adapterFull:
            "add an adapter, let devices take turns (bluetooth.rotate), or take a device out of the configuration"
        case .requested, .local, .vanished, .rotated, .ownedElsewhere, .unknown: nil
        }
    }
}
