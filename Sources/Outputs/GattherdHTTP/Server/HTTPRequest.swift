/// What a client asks for.
public struct HTTPRequest: Hashable, Sendable {
    public enum Method: String, Hashable, Sendable, CaseIterable {
        case get = "GET"
        case head = "HEAD"
        case post = "POST"
    }

    public var method: Method
    /// The path with its escapes resolved, beginning with a slash.
    public var path: String
    /// The arguments behind the path; of a name that is there twice this is the first.
    public var query: [String: String]
    /// The names of arguments that are there more than once.
    public var repeated: Set<String> = []
    /// By their names in lower case; what is there twice is joined by a comma.
    public var headers: [String: String]
    public var body: [UInt8]

    public init(
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
