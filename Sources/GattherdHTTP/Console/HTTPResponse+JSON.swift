import GattherdModel

extension HTTPResponse {
    /// A JSON text that is complete already.
    static func json(_ status: Int = 200, _ octets: [UInt8]) -> HTTPResponse {
        HTTPResponse(status, type: "application/json", octets)
    }

    /// `{"error":…}`, for people.
    static func error(_ status: Int, _ words: String) -> HTTPResponse {
        json(
            status,
            JSONWriter.octets { writer in
                writer.beginObject()
                writer.key("error")
                writer.string(words)
                writer.endObject()
            }
        )
    }

    /// What is not there in this way.
    static func methodNotAllowed(_ allowed: String) -> HTTPResponse {
        error(405, "use \(allowed)").with("Allow", allowed)
    }
}
