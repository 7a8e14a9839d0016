/// A request of a client.
package struct HTTPRequest: Hashable, Sendable {
    package enum Method: String, Hashable, Sendable, CaseIterable {
        case get = "GET"
        case head = "HEAD"
        case post = "POST"
    }

    package var method: Method
    /// The decoded path, with the leading slash.
    package var path: String
    /// The arguments of the query; the first one of a repeated name.
    package var query: [String: String]
    /// The names of repeated arguments.
    package var repeated: Set<String> = []
    /// Headers by name in lower case; repeated ones are joined by commas.
    package var headers: [String: String]
    package var body: [UInt8]

    package init(
        _ method: Method,
        _ path: String,
        query: [String: String] = [:],
        headers: [String: String] = [:],
        body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
    }
}
