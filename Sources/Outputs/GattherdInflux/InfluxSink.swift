import FoundationEssentials
import GattherdHTTPClient
public import GattherdModel
public import GattherdOutputs
import GattherdSync

/// Writes readings to InfluxDB, or to a server that understands its API.
public final class InfluxSink: BatchSink {
    private enum Compression: Sendable {
        case none
        /// The server has not accepted a compressed body yet.
        case unproven
        case proven
    }

    private struct State: Sendable {
        var points: PointWriter
        var limit = BodyLimit()
        var compression: Compression
        var credentials: InfluxCredentials?
        /// True if the server refused the credentials, so that their file may have newer ones.
        var mustReadCredentials = false
    }

    /// A request with the points of readings.
    private struct Write {
        var body: [UInt8] = []
        /// The number of readings, including those without a point.
        var count = 0
    }

    private let options: InfluxOptions
    private let client: HTTPClient
    private let judge: WriteJudge
    private let readCredentials: @Sendable () -> InfluxCredentials?
    private let state: Locked<State>

    /// - Parameters:
    ///   - options: The options.
    ///   - readCredentials: Reads the credentials again; `nil` keeps those of the options. It may block, and is called
    ///     after the server has refused them.
    public init(
        _ options: InfluxOptions,
        readCredentials: @escaping @Sendable () -> InfluxCredentials? = { nil }
    ) {
        self.options = options
        client = HTTPClient(threadName: "influx", files: options.tls)
        judge = WriteJudge(options: options)
        self.readCredentials = readCredentials
        let points = PointWriter(gateway: options.gateway, measurement: options.measurement)
        let compression = options.compresses ? Compression.unproven : .none
        state = Locked(State(points: points, compression: compression, credentials: options.credentials))
    }

    public func write(_ entries: [JournalEntry]) async throws(OutputFault) {
        await renewCredentials()
        var rest = entries.compactMap(\.reading)[...]
        var (lost, words) = (0, "")
        while !rest.isEmpty {
            let write = try encode(rest)
            let answer = write.body.isEmpty ? .accepted : try await send(write)
            switch answer {
            case .accepted:
                rest = rest.dropFirst(write.count)
                state.withLock { $0.limit.accept(write.body.count) }
            case .expired(let points, let fault):
                lost += expired(points, of: rest.prefix(write.count))
                words = fault.detail
                rest = rest.dropFirst(write.count)
            case .tooLarge(let words): try shrink(below: write, words)
            case .failed(let fault): throw fault
            }
        }
        if lost > 0 { throw OutputFault(.refused, words, lost: lost) }
    }

    /// The number of readings, the oldest first, that have this number of points.
    private func expired(_ points: Int, of readings: ArraySlice<JournalReading>) -> Int {
        var rest = points
        let counts = readings.sorted { $0.time < $1.time }.map { pointCount($0) }.filter { $0 > 0 }
        return counts.prefix { count in
            defer { rest -= count }
            return rest > 0
        }.count
    }

    private func pointCount(_ reading: JournalReading) -> Int {
        state.withLock { state in
            var text: [UInt8] = []
            return state.points.write(reading, to: &text) ? text.count { $0 == UInt8(ascii: "\n") } : 0
        }
    }

    public func close() async {
        client.close()
    }

    /// Formats as many readings as a body may have, at least one.
    private func encode(_ readings: ArraySlice<JournalReading>) throws(OutputFault) -> Write {
        let (write, refused) = state.withLock { state in
            var write = Write()
            for reading in readings {
                let length = write.body.count
                guard state.points.write(reading, to: &write.body) else {
                    return (write, JournalReading?.some(reading))
                }
                if write.count > 0, write.body.count > state.limit.bytes {
                    write.body.removeLast(write.body.count - length)
                    break
                }
                write.count += 1
            }
            return (write, nil)
        }
        guard let refused else { return write }
        let detail = "the time \(refused.time.microseconds) µs is out of InfluxDB's range, the years 1678 to 2261"
        throw OutputFault(.refused, detail)
    }

    /// Sends a body, compressed if the server accepts that.
    ///
    /// Some servers ignore the header and refuse each compressed body as nonsense. So until one is accepted, a refused
    /// body is sent again without compression; if the server takes that, all further ones are not compressed. Another
    /// server may answer later, so a single reading, which a refusal would skip, is always sent again.
    private func send(_ write: Write) async throws(OutputFault) -> WriteAnswer {
        let compression = state.withLock(\.compression)
        guard compression != .none, let compressed = Gzip.compress(write.body) else {
            return try await request(write.body, encoding: nil)
        }
        let answer = try await request(compressed, encoding: "gzip")
        if answer.hasStored { state.withLock { $0.compression = .proven } }
        guard compression == .unproven || write.count == 1, answer.isRefusal else { return answer }
        let plainAnswer = try await request(write.body, encoding: nil)
        if plainAnswer.hasStored { state.withLock { $0.compression = .none } }
        return plainAnswer
    }

    private func request(_ body: [UInt8], encoding: String?) async throws(OutputFault) -> WriteAnswer {
        var request = HTTPClientRequest(options.writeURL, body: body)
        request.headers = Self.headers(state.withLock(\.credentials))
        request.wantedHeaders = WriteJudge.wantedHeaders
        request.headers["Content-Encoding"] = encoding
        do throws(HTTPClientError) {
            let response = try await client.send(request)
            if response.status == 401 || response.status == 403 { state.withLock { $0.mustReadCredentials = true } }
            return judge.judge(response)
        } catch {
            throw OutputFault(error, options)
        }
    }

    /// Makes further bodies smaller.
    ///
    /// - Throws: A refusal if the body had only one reading.
    private func shrink(below write: Write, _ words: String) throws(OutputFault) {
        guard write.count > 1 else {
            throw OutputFault(.refused, "\(words); the limit of the server or its proxy is below one reading")
        }
        state.withLock { $0.limit.refuse(write.body.count) }
    }

    /// Reads the credentials again if the server has refused them, because the file may have been renewed.
    private func renewCredentials() async {
        guard state.withLock(\.mustReadCredentials) else { return }
        guard let found = await NamedThread.result(name: "influx-secret", of: readCredentials) else { return }
        state.withLock { state in
            state.mustReadCredentials = false
            state.credentials = found ?? state.credentials
        }
    }

    private static func headers(_ credentials: InfluxCredentials?) -> [String: String] {
        var headers = ["Content-Type": "text/plain; charset=utf-8"]
        switch credentials {
        case nil: break
        case .token(let token): headers["Authorization"] = "Token \(token)"
        case .password(let user, let password):
            headers["Authorization"] = "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
        }
        return headers
    }
}

/// The largest body of a request, before compression; a single reading may exceed it.
///
/// A refusal of a body for its size, by the server or its proxy, halves the limit. A number of accepted bodies near the
/// limit doubles it again, as the server may have another limit by then. So at most one in a hundred requests is
/// refused.
private struct BodyLimit: Sendable {
    private static let most = 1 << 20
    /// The number of accepted bodies near the limit after which a larger one is tried.
    private static let trialCount = 100

    private(set) var bytes = most
    private var accepted = 0

    mutating func accept(_ count: Int) {
        guard bytes < Self.most, count > bytes / 2 else { return }
        accepted += 1
        guard accepted >= Self.trialCount else { return }
        bytes = min(bytes * 2, Self.most)
        accepted = 0
    }

    mutating func refuse(_ count: Int) {
        bytes = min(bytes, count / 2)
        accepted = 0
    }
}
