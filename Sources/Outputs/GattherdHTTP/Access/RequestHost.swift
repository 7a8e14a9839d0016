/// What a request calls the server: the header `Host`.
struct RequestHost: Hashable {
    /// In lower case, without the port; an IPv6 address is in brackets.
    let name: String
    /// As it was sent, in lower case.
    let authority: String

    /// `nil` for what is no host and port.
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

    /// An address cannot be another server's name that leads here (DNS rebinding).
    var isAddress: Bool {
        if name.hasPrefix("[") { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { $0.allSatisfy(\.isASCIIDigit) && UInt8($0) != nil }
    }

    /// Names nobody but the host itself.
    var isLoopback: Bool {
        name == "localhost" || name.hasSuffix(".localhost") || name == "[::1]" || isAddress && name.hasPrefix("127.")
    }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
