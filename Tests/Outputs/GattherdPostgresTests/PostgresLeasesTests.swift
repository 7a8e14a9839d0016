import GattherdMachines
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct PostgresLeasesTests {
    private static let address = "C0:FF:EE:00:00:01"

    /// A gateway's side of the leases.
    private struct Side {
        let leases: PostgresLeases

        /// Sends one request and returns the lease after it.
        @discardableResult
        func exchange(
            _ operation: LeaseRequest.Operation = .observe,
            address: String = PostgresLeasesTests.address,
            _ bid: LeaseBid? = nil,
            reason: String = ""
        ) async throws -> LeaseRow {
            let own = bid ?? LeaseBid(gateway: leases.gateway, standing: .steady, rssi: -60)
            let request = LeaseRequest(
                device: "strap",
                address: address,
                bid: own,
                isBidDue: bid != nil,
                operation: operation,
                reason: reason
            )
            return try #require(try await leases.exchange([request], within: .seconds(20)).first)
        }
    }

    private func side(_ centre: Centre, _ gateway: String) async throws -> Side {
        try side(centre, try await centre.fleet.add(gateway: gateway), named: gateway)
    }

    private func side(
        _ centre: Centre,
        _ credentials: FleetDatabase.Credentials,
        named name: String,
        port: Int? = nil
    ) throws -> Side {
        let url = try Centre.url(port ?? centre.server.port)
        let client = PostgresClient(url, user: credentials.role) { credentials.password }
        return Side(leases: PostgresLeases(client, url: url, gateway: name))
    }

    @Test func `a lease goes from gateway to gateway, each time with a greater epoch`() async throws {
        let centre = try await Centre()
        let (west, east) = (try await side(centre, "west"), try await side(centre, "east"))
        let free = try await west.exchange()
        #expect(free.owner == nil && free.epoch == 0 && !free.isGranted)
        let owned = try await west.exchange(.claim(epoch: 0), reason: "it is nearest")
        #expect(owned.owner == "west" && owned.epoch > 0 && owned.isGranted && !owned.isReleased)
        #expect(owned.remaining > .seconds(29) && owned.remaining <= .seconds(30))
        let refused = try await east.exchange(.claim(epoch: owned.epoch))
        #expect(refused.owner == "west" && refused.epoch == owned.epoch && !refused.isGranted)
        #expect(refused.reason == "it is nearest")
        #expect(try await west.exchange(.renew(epoch: owned.epoch)).isGranted)
        #expect(try await !west.exchange(.renew(epoch: owned.epoch - 1)).isGranted)
        #expect(try await west.exchange(.release(epoch: owned.epoch), reason: "east is nearer").isReleased)
        #expect(try await !west.exchange(.renew(epoch: owned.epoch)).isGranted)
        let next = try await east.exchange(.claim(epoch: owned.epoch))
        #expect(next.owner == "east" && next.epoch > owned.epoch && next.previous == "west" && next.isGranted)
        #expect(try await !west.exchange(.release(epoch: owned.epoch)).isGranted)
        let views = try await centre.rows("SELECT device, owner, state, previous FROM gattherd.leases")
        #expect(views == [["strap", "east", "owned", "west"]])
    }

    @Test func `an expired lease is free, and its owner may renew it until somebody takes it`() async throws {
        let centre = try await Centre()
        let (west, east) = (try await side(centre, "west"), try await side(centre, "east"))
        let owned = try await west.exchange(.claim(epoch: 0))
        _ = try await centre.rows("UPDATE gattherd.lease SET expires = now() - interval '1 s'")
        let expired = try await east.exchange()
        #expect(expired.remaining <= .zero && expired.owner == "west")
        #expect(try await west.exchange(.renew(epoch: owned.epoch)).remaining > .seconds(20))
        _ = try await centre.rows("UPDATE gattherd.lease SET expires = now() - interval '1 s'")
        let taken = try await east.exchange(.claim(epoch: owned.epoch))
        #expect(taken.isGranted && taken.owner == "east")
        #expect(try await !west.exchange(.renew(epoch: owned.epoch)).isGranted)
    }

    @Test func `a lease has the name that its owner gives the device`() async throws {
        let centre = try await Centre()
        let (west, east) = (try await side(centre, "west"), try await side(centre, "east"))
        let owned = try await west.exchange(.claim(epoch: 0))
        let bid = LeaseBid(gateway: "west", standing: .steady, rssi: -60)
        let renamed = LeaseRequest(
            device: "belt",
            address: Self.address,
            bid: bid,
            isBidDue: true,
            operation: .claim(epoch: owned.epoch)
        )
        _ = try await west.leases.exchange([renamed], within: .seconds(20))
        try await east.exchange()
        #expect(try await centre.value("SELECT device FROM gattherd.leases") == "belt")
    }

    @Test func `of any number of claims at once, one is granted`() async throws {
        let centre = try await Centre(settings: ["max_connections=60"])
        var sides: [Side] = []
        for number in 0..<16 { sides.append(try await side(centre, "gateway-\(number)")) }
        let addresses = (0..<20).map { "C0:FF:EE:00:00:\($0 + 10)" }
        var epochs = Dictionary(addresses.map { ($0, Int64(0)) }) { first, _ in first }
        for _ in 0..<5 {
            let rows = try await claim(addresses, epochs, by: sides)
            for address in addresses {
                let granted = rows.filter { $0.address == address && $0.isGranted }
                #expect(granted.count == 1)
                let epoch = try #require(granted.first?.epoch)
                #expect(epoch > epochs[address] ?? 0)
                epochs[address] = epoch
            }
            _ = try await centre.rows("UPDATE gattherd.lease SET released = true")
        }
    }

    /// Lets all gateways claim all devices at the same time, each in another order.
    private func claim(_ addresses: [String], _ epochs: [String: Int64], by sides: [Side]) async throws -> [LeaseRow] {
        try await withThrowingTaskGroup { group in
            for side in sides {
                let requests = addresses.shuffled().map { address in
                    LeaseRequest(
                        device: "d",
                        address: address,
                        bid: LeaseBid(gateway: side.leases.gateway, standing: .heard, rssi: -70),
                        isBidDue: true,
                        operation: .claim(epoch: epochs[address] ?? 0)
                    )
                }
                group.addTask { try await side.leases.exchange(requests, within: .seconds(60)) }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    @Test func `a gateway bids, claims and releases for itself only`() async throws {
        let centre = try await Centre()
        let west = try await side(centre, "west")
        let owned = try await west.exchange(.claim(epoch: 0))
        let credentials = try await centre.fleet.add(gateway: "east")
        let forger = try side(centre, credentials, named: "west")
        let error = await #expect(throws: OutputFault.self) { try await forger.exchange(.release(epoch: owned.epoch)) }
        #expect(error?.detail.contains("is that of the gateway \"east\"") == true)
        let east = try side(centre, credentials, named: "east")
        let epoch = owned.epoch
        for operation in [LeaseRequest.Operation.release(epoch: epoch), .renew(epoch: epoch), .claim(epoch: epoch)] {
            let bid = LeaseBid(gateway: "west", standing: .gone)
            let row = try await east.exchange(operation, bid)
            #expect(row.owner == "west" && row.epoch == owned.epoch && !row.isReleased && !row.isGranted)
            #expect(row.bids.map(\.bid.gateway) == ["east"])
        }
        let client = PostgresClient(try Centre.url(centre.server.port), user: credentials.role) { credentials.password }
        for sql in [
            "UPDATE gattherd.lease SET owner = 2", "DELETE FROM gattherd.lease_bid", "SELECT * FROM gattherd.lease",
            "INSERT INTO gattherd.lease_bid SELECT address, 1, '', 'gone', 0, '', now() FROM gattherd.lease",
        ] {
            let refusal = await #expect(throws: PostgresError.self) { _ = try await client.run(sql) }
            #expect(refusal?.sqlState == "42501")
        }
    }

    @Test func `bids are kept with their age, and bound in length`() async throws {
        let centre = try await Centre()
        let (west, east) = (try await side(centre, "west"), try await side(centre, "east"))
        let long = String(repeating: "é", count: 5000)
        try await west.exchange(.observe, LeaseBid(gateway: "west", standing: .linked, rssi: -61, problem: long))
        _ = try await centre.rows("UPDATE gattherd.lease_bid SET updated = now() - interval '12 s'")
        let row = try await east.exchange(.claim(epoch: 0), LeaseBid(gateway: "east", standing: .heard), reason: long)
        #expect(row.bids.map(\.bid.gateway) == ["east", "west"])
        let bid = try #require(row.bids.last)
        #expect(bid.bid.standing == .linked && bid.bid.rssi == -61 && bid.bid.problem?.count == 200)
        #expect(bid.age >= .seconds(12) && bid.age < .seconds(30))
        #expect(row.reason.count == 400)
        #expect(row.bids.first?.bid.rssi == nil)
        _ = try await centre.rows("UPDATE gattherd.lease_bid SET updated = now() - interval '1 minute'")
        #expect(try await centre.rows("SELECT DISTINCT standing, rssi FROM gattherd.bids") == [["gone", "NULL"]])
    }

    @Test func `bids that were not repeated for half a minute are not sent to the gateways`() async throws {
        let centre = try await Centre()
        let (west, east) = (try await side(centre, "west"), try await side(centre, "east"))
        try await west.exchange(.claim(epoch: 0), LeaseBid(gateway: "west", standing: .linked, rssi: -61))
        try await east.exchange(.observe, LeaseBid(gateway: "east", standing: .heard, rssi: -70))
        _ = try await centre.rows(
            "UPDATE gattherd.lease_bid SET updated = now() - interval '31 s' WHERE standing = 'linked'"
        )
        let row = try await east.exchange()
        #expect(row.bids.map(\.bid.gateway) == ["east"])
        _ = try await centre.rows("UPDATE gattherd.lease_bid SET updated = now() - interval '31 s'")
        let last = try await east.exchange()
        #expect(last.bids.isEmpty && last.owner == "west")
    }

    @Test func `after a clock of the centre that was set back, leases of the future count as ended`() async throws {
        let centre = try await Centre()
        let (west, east) = (try await side(centre, "west"), try await side(centre, "east"))
        let owned = try await west.exchange(.claim(epoch: 0))
        _ = try await centre.rows("UPDATE gattherd.lease SET expires = now() + interval '1 year'")
        #expect(try await east.exchange().remaining <= .zero)
        #expect(try await east.exchange(.claim(epoch: owned.epoch)).isGranted)
    }

    @Test func `after a clock of the centre that was set back, bids of the future count as old`() async throws {
        let centre = try await Centre()
        let (west, east) = (try await side(centre, "west"), try await side(centre, "east"))
        try await west.exchange(.observe, LeaseBid(gateway: "west", standing: .linked, rssi: -50))
        _ = try await centre.rows("UPDATE gattherd.lease_bid SET updated = now() + interval '1 hour'")
        let bid = try #require(try await east.exchange().bids.first)
        #expect(bid.bid.gateway == "west" && bid.age > .seconds(3600))
        #expect(try await centre.rows("SELECT standing, rssi FROM gattherd.bids") == [["gone", "NULL"]])
    }

    @Test func `a standby server that lacks the last claim never repeats a lease epoch`() async throws {
        let centre = try await Centre()
        let (west, east) = (try await side(centre, "west"), try await side(centre, "east"))
        try await east.exchange()
        let lost = try await west.exchange(.claim(epoch: 0))
        _ = try await centre.rows("UPDATE gattherd.lease SET epoch = 0, owner = NULL, released = true")
        let next = try await east.exchange(.claim(epoch: 0))
        #expect(next.isGranted && next.epoch > lost.epoch)
    }

    @Test func `signal strengths that Bluetooth does not have are left out`() async throws {
        let centre = try await Centre()
        let west = try await side(centre, "west")
        _ = try await centre.rows(
            """
            DROP FUNCTION gattherd.exchange_leases;
            CREATE FUNCTION gattherd.exchange_leases(
                text, text[], text[], text[], bigint[], text[], text[], bigint[], text[], text[]
            ) RETURNS TABLE (
                address text, owner text, previous text, epoch bigint, remaining bigint, released boolean, reason text,
                gateway text, standing text, rssi bigint, problem text, age bigint, granted boolean, allowed text
            ) LANGUAGE sql AS $$
                SELECT $2[1], NULL, NULL, 0, 0, true, '', g, 'steady', n, NULL, 0, false, NULL
                FROM (VALUES ('east', '-9223372036854775808'::bigint), ('middle', -128), ('north', -127), ('south', 21))
                    AS b(g, n)
            $$;
            GRANT EXECUTE ON FUNCTION gattherd.exchange_leases TO PUBLIC
            """
        )
        #expect(try await west.exchange().bids.map(\.bid.rssi) == [nil, nil, -127, nil])
    }

    @Test func `a centre of an older version says so`() async throws {
        let centre = try await Centre()
        let west = try await side(centre, "west")
        _ = try await centre.rows("DROP FUNCTION gattherd.exchange_leases CASCADE")
        let error = await #expect(throws: OutputFault.self) { try await west.exchange() }
        #expect(error?.detail.contains("gattherd fleet upgrade") == true)
    }

    @Test(.enabled(if: PgBouncer.program != nil, "PgBouncer is missing; run: make test-servers"))
    func `leases work through PgBouncer in transaction mode`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "west")
        let bouncer = try PgBouncer(
            centre.server,
            database: Centre.database,
            users: [(credentials.role, credentials.password)]
        )
        try await bouncer.start()
        let (first, second) = (
            try side(centre, credentials, named: "west", port: bouncer.port),
            try side(centre, credentials, named: "west", port: bouncer.port)
        )
        var epoch: Int64 = 0
        for number in 0..<20 {
            let row = try await (number.isMultiple(of: 2) ? first : second).exchange(.claim(epoch: epoch))
            #expect(row.isGranted && row.epoch > epoch)
            epoch = row.epoch
        }
    }

    private func request(
        _ side: Side,
        _ operation: LeaseRequest.Operation,
        _ gateways: [String]?
    ) async throws -> LeaseRow {
        let bid = LeaseBid(gateway: side.leases.gateway, standing: .steady, rssi: -60)
        var request = LeaseRequest(device: "s", address: Self.address, bid: bid, isBidDue: true, operation: operation)
        request.gateways = gateways
        return try #require(try await side.leases.exchange([request], within: .seconds(20)).first)
    }

    @Test func `the centre keeps a device for the gateways that its first gateway names`() async throws {
        let centre = try await Centre()
        let (west, east) = (try await side(centre, "west"), try await side(centre, "east"))
        let middle = try await side(centre, "middle")
        #expect(try await request(east, .observe, ["attic", "east"]).gateways == nil, "there is no attic")
        #expect(try await request(east, .observe, ["west", "east"]).gateways == ["west", "east"])
        #expect(try await !request(middle, .claim(epoch: 0), []).isGranted)
        #expect(try await request(middle, .observe, ["middle"]).gateways == ["west", "east"])
        #expect(try await request(west, .observe, ["west", "middle"]).gateways == ["west", "middle"])
        #expect(try await request(east, .claim(epoch: 0), ["east"]).gateways == ["west", "middle"])
        let refused = try await request(east, .claim(epoch: 0), [])
        #expect(refused.owner == nil && !refused.isGranted && refused.gateways == ["west", "middle"])
        let owned = try await request(middle, .claim(epoch: 0), ["middle", "east"])
        #expect(owned.isGranted && owned.gateways == ["west", "middle"])
        let narrowed = try await request(west, .observe, ["west"])
        #expect(narrowed.gateways == ["west"] && narrowed.owner == "middle")
        #expect(try await !request(middle, .renew(epoch: owned.epoch), nil).isGranted)
        #expect(try await request(middle, .release(epoch: owned.epoch), nil).isGranted)
        #expect(try await request(west, .claim(epoch: owned.epoch), []).gateways == nil)
        #expect(try await centre.rows("SELECT owner, gateways FROM gattherd.leases") == [["west", "NULL"]])
    }

    @Test func `a gateway of the version before, which sends no lists, exchanges leases`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "west")
        let client = PostgresClient(try Centre.url(centre.server.port), user: credentials.role) { credentials.password }
        let arrays = "'{tag}', '{steady}', '{-60}', '{NULL}', '{claim}', '{0}', '{near}'"
        let sql = "SELECT owner, granted FROM gattherd.exchange_leases('west', '{\(Self.address)}', \(arrays))"
        #expect(try await client.run(sql) == [["west", "t"]])
    }
}
