/// The `Host` header of a request.
struct RequestHost: Hashable {
    /// The name in lower case without the port; an IPv6 address is in brackets.
    let name: String
    /// The whole header in lower case.
    let authority: String

    /// Returns `nil` unless the header is a host with an optional port.
    init?(_ header: String?) {
        guard let header, !header.isEmpty else { return nil }
        authority = header.lowercased()
        let name: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            name = authority[...end]
        } else {
            name = authority.prefix { $0 != ":" }
        }
        let port = authority[name.endIndex...]
        guard port.isEmpty || port.first == ":" && port.dropFirst().allSatisfy(\.isASCIIDigit) else { return nil }
        self.name = String(name.last == "." ? name.dropLast() : name)
    }

    /// True for an IP address, which DNS rebinding cannot forge.
    var isAddress: Bool {
        if name.hasPrefix("[") { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { $0.allSatisfy(\.isASCIIDigit) && UInt8($0) != nil }
    }

    /// True for names and addresses of the loopback interface.
    var isLoopback: Bool {
        name == "localhost" || name.hasSuffix(".localhost") || name == "[::1]" || isAddress && name.hasPrefix("127.")
    }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
