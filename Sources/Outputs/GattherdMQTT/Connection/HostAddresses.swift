import Glibc

/// The addresses of a host.
public enum HostAddresses {
    /// Resolves `host` to numeric addresses in the system's order of preference; may block for long.
    ///
    /// - Throws: The resolver's message if there are none.
    public static func resolve(_ host: String) throws(ResolverError) -> [String] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else { throw ResolverError(host: host, code: code) }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [String] = []
        var next = unsafe list
        while let info = unsafe next?.pointee {
            if let address = unsafe number(info) { addresses.append(address) }
            unsafe next = info.ai_next
        }
        return addresses
    }

    private static func number(_ info: addrinfo) -> String? {
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let length = socklen_t(text.count)
        let code = unsafe getnameinfo(info.ai_addr, info.ai_addrlen, &text, length, nil, 0, NI_NUMERICHOST)
        guard code == 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The error of a failed name lookup.
public struct ResolverError: Error, Hashable, CustomStringConvertible {
    let host: String
    let code: Int32

    public var description: String { "no address of '\(host)' is known: \(unsafe String(cString: gai_strerror(code)))" }
}
