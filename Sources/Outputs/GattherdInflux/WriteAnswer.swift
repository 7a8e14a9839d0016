import GattherdConfig
import GattherdHTTPClient
import GattherdModel
import GattherdOutputs

/// The meaning of a server's answer to a write request.
enum WriteAnswer: Hashable {
    /// The server has all points.
    case accepted
    /// The body is larger than the server or a proxy accepts.
    case tooLarge(String)
    /// The server has all points but this number, which are older than it keeps points.
    case expired(points: Int, OutputFault)
    case failed(OutputFault)

    /// True if the server has understood the body and stored its points, as far as it keeps them.
    var hasStored: Bool {
        switch self {
        case .accepted, .expired: true
        case .tooLarge, .failed: false
        }
    }

    /// True if the server refuses the body for good.
    var isRefusal: Bool {
        if case .failed(let fault) = self { fault.kind == .refused } else { false }
    }
}

/// Classifies answers by their status; texts are only for people.
///
/// There is one exception: only the text states that points are too old, and how many. The other points of the request
/// are stored then. Searching the old points one by one would take longer than further ones need to become too old.
struct WriteJudge {
    /// The header that InfluxDB and VictoriaMetrics send with each answer to a write request.
    private static let signature = "X-Influxdb-Version"
    static let wantedHeaders = [signature, "Location"]

    let options: InfluxOptions

    func judge(_ response: HTTPClientResponse) -> WriteAnswer {
        let said = "\(options.url) answers \(response.status)\(Self.words(response))"
        switch response.status {
        case 204: return .accepted
        // InfluxDB Clustered and Cloud Dedicated send this if they have refused some of the points.
        case 201: return response.body.isEmpty ? .accepted : .failed(OutputFault(.refused, said))
        case 400, 422: return expiry(response, said) ?? .failed(refusal(response, said))
        case 413: return .tooLarge(said)
        case 408, 425, 429, 500...: return .failed(busy(response, said))
        default: return .failed(OutputFault(.misconfigured, "\(said); \(remedy(response))"))
        }
    }

    /// The answer of InfluxDB 1 and 2 to points beyond the database's retention; `nil` for another answer.
    private func expiry(_ response: HTTPClientResponse, _ said: String) -> WriteAnswer? {
        guard let message = Self.message(response.body),
            message.contains("beyond retention policy") || message.contains("outside retention policy"),
            let range = message.firstRange(of: "dropped"),
            let count = Int(message[range.upperBound...].drop { " =".contains($0) }.prefix { $0.isWholeNumber })
        else { return nil }
        return .expired(points: count, OutputFault(.refused, said))
    }

    /// A server that is not a database may answer every request like this.
    private func refusal(_ response: HTTPClientResponse, _ said: String) -> OutputFault {
        let isDatabase = response.headers[Self.signature] != nil || Self.message(response.body) != nil
        if isDatabase { return OutputFault(.refused, said) }
        return OutputFault(.misconfigured, "\(said); this is not the answer of a database; check influx.url")
    }

    private func busy(_ response: HTTPClientResponse, _ said: String) -> OutputFault {
        // InfluxDB 1 answers 500 if the retention policy does not exist.
        guard case .database(_, let policy?) = options.database, response.status == 500 else {
            // Limits of requests are often answered without a pause.
            let pause: Duration? = [429, 503].contains(response.status) ? .zero : nil
            return OutputFault(.unavailable, said, retryAfter: response.retryAfter ?? pause)
        }
        return OutputFault(.unavailable, "\(said); check influx.retention_policy '\(policy)'")
    }

    private func remedy(_ response: HTTPClientResponse) -> String {
        switch (response.status, options.database) {
        case (200...299, _): return "writing is answered with 204: check influx.url"
        case (300...399, _): return "redirects are not followed: \(target(response))"
        case (401, _): return credentialsRemedy
        case (403, .bucket(let bucket, _)): return "the token must be allowed to write to the bucket '\(bucket)'"
        case (403, .database(let name, _)): return "the user or token must be allowed to write to '\(name)'"
        case (404, .bucket(let bucket, let organisation)):
            let place = organisation.map { " of the organisation '\($0)'" } ?? ""
            return "create the bucket '\(bucket)'\(place), or correct influx.url, influx.bucket or influx.org"
        case (404, .database(let name, _)): return "create the database '\(name)', or correct influx.url"
        case (415, _) where options.compresses: return "write influx.gzip: false, or check influx.url"
        default: return "check influx.url"
        }
    }

    private var credentialsRemedy: String {
        switch options.credentials {
        case nil: "it wants credentials: write influx.token_file, or influx.username and influx.password_file"
        case .token: "check the token in influx.token_file"
        case .password: "check influx.username and the password in influx.password_file"
        }
    }

    private func target(_ response: HTTPClientResponse) -> String {
        guard let location = response.headers["Location"] else { return "check influx.url" }
        let target = location.onOneLine.prefix { $0 != "?" }.prefix(200)
        return "it redirects to \(target); write the new address into influx.url"
    }

    /// The server's words, for people.
    private static func words(_ response: HTTPClientResponse) -> String {
        let text = (message(response.body) ?? String(decoding: response.body, as: UTF8.self)).onOneLine
        let words = text.split(separator: " ").joined(separator: " ")
        guard !words.isEmpty, !words.hasPrefix("<") else { return "" }
        return ": " + (words.count > 300 ? words.prefix(300) + "…" : words[...])
    }

    /// The message in a JSON object: `error` of InfluxDB 1 and 3, `message` of InfluxDB 2.
    private static func message(_ body: [UInt8]) -> String? {
        var message: String?
        try? JSONReader.forEachMember(of: body[...]) { name, value in
            guard case .string(let text) = value, name == "error" || name == "message" else { return }
            message = text
        }
        return message
    }
}

extension OutputFault {
    /// The fault for a request without an answer.
    init(_ error: HTTPClientError, _ options: InfluxOptions) {
        let said = "cannot write to \(options.url): \(error.detail)"
        switch error.kind {
        case .unresolved: self.init(.unavailable, "\(said); check the host in influx.url, and DNS")
        case .unreachable: self.init(.unavailable, "\(said); check whether the database runs, and influx.url")
        case .timeout: self.init(.unavailable, "\(said); check whether the database is overloaded")
        case .interrupted: self.init(.unavailable, said)
        case .certificate:
            self.init(.misconfigured, "\(said); name the authority in influx.tls.ca, or use the certificate's host")
        case .tls: self.init(.misconfigured, "\(said); check that the port of influx.url is one for https")
        case .file: self.init(.misconfigured, "\(said); check the files in influx.tls")
        case .notHTTP, .notWebSocket:
            let advice = options.url.usesTLS ? "check influx.url" : "if its port is one for TLS, write https://"
            self.init(.misconfigured, "\(said); \(advice)")
        case .cancelled, .local: self.init(.unavailable, said)
        }
    }
}
