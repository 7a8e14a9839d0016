package import GattherdMachines
import GattherdModel
package import GattherdOutputs
import GattherdSync

/// The leases at the centre, for one gateway.
package final class PostgresLeases: Sendable {
    private static let statement =
        "SELECT * FROM gattherd.exchange_leases($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"

    private let client: PostgresClient
    private let url: PostgresURL
    /// The gateway's name at the centre.
    package let gateway: String
    private let daemon: DaemonRun
    /// The time of the next report to the centre that the daemon is alive.
    private let nextAttendance = Locked(SuspendingClock.Instant?.none)

    private let attendancePause: Duration

    package init(
        _ client: PostgresClient,
        url: PostgresURL,
        gateway: String,
        daemon: DaemonRun = .current,
        attendancePause: Duration = .seconds(10)
    ) {
        (self.client, self.url, self.gateway) = (client, url, gateway)
        (self.daemon, self.attendancePause) = (daemon, attendancePause)
    }

    /// Writes bids, performs operations and returns the leases of these devices, in one statement.
    ///
    /// Before that, it reports at intervals that the daemon is alive. One call has both statements, so that no batch
    /// gets the connection between them.
    ///
    /// - Throws: ``OutputFault`` with cause and remedy. Then it is not known whether the operations were performed.
    package func exchange(
        _ requests: [LeaseRequest],
        within limit: Duration
    ) async throws(OutputFault) -> [LeaseRow] {
        let now = SuspendingClock.now
        let isAttendanceDue = nextAttendance.withLock(\.self).map { $0 <= now } ?? true
        let parameters = parameters(requests)
        let (conflict, rows): (String?, [[String?]])
        do throws(PostgresError) {
            (conflict, rows) = try await client.perform(within: limit) {
                [daemon] (connection, call) throws(PostgresError) in
                let conflict = isAttendanceDue ? try daemon.attend(connection, call) : nil
                if conflict != nil { return (conflict, []) }
                return (nil, try connection.run(Self.statement, parameters) { call.mayContinue })
            }
        } catch {
            throw OutputFault(error, at: url)
        }
        if let conflict { throw OutputFault(.misconfigured, "\(url): \(conflict)") }
        if isAttendanceDue { nextAttendance.withLock { $0 = now + attendancePause } }
        return LeaseRow.all(rows)
    }

    package func close() { client.close() }

    private func parameters(_ requests: [LeaseRequest]) -> [PostgresParameter] {
        [
            .text(gateway),
            .texts(requests.map(\.address)),
            .texts(requests.map(\.device)),
            .texts(requests.map { $0.isBidDue ? $0.bid.standing.rawValue : nil }),
            .integers(requests.map { $0.bid.rssi.map { Int64($0) } }),
            .texts(requests.map(\.bid.problem)),
            .texts(requests.map(\.operation.name)),
            .integers(requests.map(\.operation.epoch)),
            .texts(requests.map(\.reason)),
            .texts(requests.map { $0.gateways?.joined(separator: ",") }),
        ]
    }
}

extension LeaseRequest.Operation {
    fileprivate var name: String? {
        switch self {
        case .observe: nil
        case .claim: "claim"
        case .renew: "renew"
        case .release: "release"
        }
    }

    fileprivate var epoch: Int64? {
        switch self {
        case .observe: nil
        case .claim(let epoch), .renew(let epoch), .release(let epoch): epoch
        }
    }
}

extension LeaseRow {
    /// The longest texts of a lease in bytes; those of a centre of gattherd have at most 400 characters.
    ///
    /// A foreign server may send megabytes, which must not get into topics, the status and the log.
    private static let longestText = 1600
    /// The longest list of gateways in bytes, as at the centre.
    private static let longestList = 4096

    /// The leases in rows, which have one row for each bid; rows of another shape are left out.
    static func all(_ rows: [[String?]]) -> [LeaseRow] {
        var leases: [LeaseRow] = []
        for row in rows where row.count == 14 {
            guard let lease = LeaseRow(row) else { continue }
            if leases.last?.address != lease.address { leases.append(lease) }
            if let bid = Bid(row) { leases[leases.count - 1].bids.append(bid) }
        }
        return leases
    }

    private init?(_ row: [String?]) {
        guard let address = row[0], let epoch = row[3].flatMap({ Int64($0) }) else { return nil }
        let isShort = row[13]?.utf8.count ?? 0 <= Self.longestList
        guard isShort, [row[1], row[2]].allSatisfy({ $0.map(Slug.isValid) ?? true }) else { return nil }
        self.init(address: address, epoch: epoch)
        (owner, previous) = (row[1], row[2])
        gateways = row[13].map { $0.split(separator: ",").map(String.init).filter(Slug.isValid) }
        remaining = .milliseconds(min(max(row[4].flatMap { Int64($0) } ?? 0, -1_000_000_000), 60_000))
        (isReleased, isGranted) = (row[5] != "f", row[12] == "t")
        reason = (row[6] ?? "").cut(toBytes: Self.longestText)
    }
}

extension LeaseRow.Bid {
    /// The signal strengths that Bluetooth has, in dBm; a foreign server may send any number.
    private static let strengths = -127...20
    /// The longest reason in bytes; one of gattherd has at most 200 characters.
    private static let longestProblem = 800

    fileprivate init?(_ row: [String?]) {
        guard let gateway = row[7], Slug.isValid(gateway),
            let standing = row[8].flatMap({ LeaseBid.Standing(rawValue: $0) })
        else { return nil }
        let bid = LeaseBid(
            gateway: gateway,
            standing: standing,
            rssi: row[9].flatMap { Int($0) }.flatMap { Self.strengths.contains($0) ? $0 : nil },
            problem: row[10]?.cut(toBytes: Self.longestProblem)
        )
        self.init(bid, age: .milliseconds(min(row[11].flatMap { Int64($0) } ?? 0, 1_000_000_000)))
    }
}

extension PostgresParameter {
    fileprivate static func texts(_ texts: [String?]) -> Self {
        var array = PostgresArray(.text, capacity: texts.count)
        for text in texts { array.append(text) }
        return .array(array)
    }

    fileprivate static func integers(_ numbers: [Int64?]) -> Self {
        var array = PostgresArray(.integer, capacity: numbers.count)
        for number in numbers { array.append(number) }
        return .array(array)
    }
}
