import GattherdGATT
import GattherdModel

extension ConfigGrammar where Value == BluetoothAddress {
    static var bluetoothAddress: Self {
        let shape = ConfigShape.pattern("^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$")
        return ConfigGrammar(
            noun: "a Bluetooth address",
            advice: "write an address such as C0:FF:EE:00:00:01",
            shape: shape
        ) {
            BluetoothAddress($0)
        }
    }
}

extension ConfigGrammar where Value == BluetoothUUID {
    static var uuid: Self {
        ConfigGrammar(noun: "a UUID", advice: "write for example 180d, or all 36 characters") { BluetoothUUID($0) }
    }
}

extension ConfigGrammar where Value == BusChoice {
    static var bus: Self {
        ConfigGrammar(noun: "a bus", advice: "write system, session or a D-Bus address such as unix:path=/run/bus") {
            text in
            switch text {
            case "system": .system
            case "session": .session
            case _ where isSafe(text): .address(text)
            default: nil
            }
        }
    }

    /// True for a list of sockets, separated by semicolons.
    ///
    /// Other kinds of addresses make libdbus run a program, or send a part of a file. Commands of root would do so as
    /// well, although the daemon's user can change files of the configuration.
    private static func isSafe(_ address: String) -> Bool {
        address.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).allSatisfy { each in
            ["unix:", "tcp:"].contains { each.starts(with: $0.utf8) }
        }
    }
}

extension ConfigGrammar where Value == String {
    package static var hostName: Self {
        ConfigGrammar(noun: "a host's name", advice: "write for example gateway.lan, without a port") { text in
            guard let (host, port) = HostAndPort.read(text[...]), port == nil, !text.hasPrefix("[") else { return nil }
            return host
        }
    }
}

extension ConfigGrammar where Value == BrokerAddress {
    package static var broker: Self {
        let advice = "write for example mqtt://localhost:1883"
        return ConfigGrammar(noun: "a broker's URL", advice: advice, shape: .pattern("^mqtts?://")) { text in
            for (scheme, usesTLS, port) in [("mqtt://", false, UInt16(1883)), ("mqtts://", true, 8883)]
            where text.hasPrefix(scheme) {
                let rest = text.dropFirst(scheme.count)
                let authority = rest.hasSuffix("/") ? rest.dropLast() : rest
                guard let (host, given) = HostAndPort.read(authority) else { return nil }
                return BrokerAddress(host: host, port: given ?? port, usesTLS: usesTLS)
            }
            return nil
        }
    }
}

extension ConfigGrammar where Value == ListenAddress {
    static var listen: Self {
        ConfigGrammar(noun: "an address to listen on", advice: "write for example 127.0.0.1:8780 or [::1]:8780") {
            text in
            guard let (host, port) = HostAndPort.read(text[...]), let port else { return nil }
            return ListenAddress(host: host, port: port)
        }
    }
}

/// `host`, `host:port` or `[IPv6 address]:port`, as in URLs.
package enum HostAndPort {
    package static func read(_ text: Substring) -> (host: String, port: UInt16?)? {
        guard let (host, rest) = split(text), !host.isEmpty, host.utf8.count <= 253 else { return nil }
        if rest.isEmpty { return (String(host), nil) }
        let digits = rest.dropFirst()
        guard rest.hasPrefix(":"), digits.first != "+", let port = UInt16(digits), port > 0 else { return nil }
        return (String(host), port)
    }

    private static func split(_ text: Substring) -> (host: Substring, rest: Substring)? {
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            let host = text[text.index(after: text.startIndex)..<end]
            let isAddress = host.contains(":") && host.utf8.allSatisfy { isAddressByte($0) }
            return isAddress ? (host, text[text.index(after: end)...]) : nil
        }
        let host = text.prefix { $0 != ":" }
        return host.utf8.allSatisfy { isHostByte($0) } ? (host, text[host.endIndex...]) : nil
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        Slug.isAllowed(byte) || byte == UInt8(ascii: ".")
            || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
    }

    /// True for digits, colons, dots and the characters of a zone.
    private static func isAddressByte(_ byte: UInt8) -> Bool {
        isHostByte(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "%")
    }
}
