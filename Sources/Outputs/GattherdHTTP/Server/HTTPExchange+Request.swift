import CMicroHTTPD

extension HTTPRequest {
    /// Reads the head of a request from libmicrohttpd; `nil` for an unknown method.
    init?(_ connection: OpaquePointer, url: UnsafePointer<CChar>?, method: UnsafePointer<CChar>?) {
        guard let url = unsafe url, let name = unsafe method,
            let method = HTTPRequest.Method(rawValue: unsafe String(cString: name))
        else { return nil }
        self.init(method, unsafe String(cString: url))
        let arguments = unsafe ValueCollector(connection, .GET_ARGUMENT_KIND) { $0 }
        query = arguments.values
        repeated = arguments.repeated
        headers = unsafe ValueCollector(connection, .HEADER_KIND) { $0.lowercased() }.values
    }
}

/// A reader of names and values from libmicrohttpd.
private final class ValueCollector {
    private(set) var values: [String: String] = [:]
    /// The names that occur more than once.
    private(set) var repeated: Set<String> = []
    private let normal: (String) -> String
    private let joins: Bool

    init(_ connection: OpaquePointer, _ kind: MHD_ValueKind, _ normal: @escaping (String) -> String) {
        joins = kind == .HEADER_KIND
        self.normal = normal
        unsafe MHD_get_connection_values(
            connection,
            kind,
            { collector, _, name, value in
                guard let collector = unsafe collector, let name = unsafe name else { return .YES }
                let text = unsafe value.map { unsafe String(cString: $0) } ?? ""
                unsafe Unmanaged<ValueCollector>.fromOpaque(collector).takeUnretainedValue()
                    .add(String(cString: name), text)
                return .YES
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private func add(_ name: String, _ value: String) {
        let name = normal(name)
        guard let first = values[name] else { return values[name] = value }
        repeated.insert(name)
        if joins { values[name] = first + ", " + value }
    }
}
