import BlueZKit
import Foundation
import TestKit
import Testing

/// Three gateways with leases, in one air.
@Suite(.enabled(if: FleetSite.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(4)))
struct FleetTests {
    private static let walker = "C0:FF:EE:00:00:01"
    /// A strap that walks from west to east and back in 60 s, a tag that two gateways hear, and a dial at west.
    private static let scenario = """
        timing: quick
        air: {exponent: 2, sensitivity: -88, noise: 2}
        gateways: [{name: west, at: [0, 0]}, {name: middle, at: [40, 0]}, {name: east, at: [80, 0]}]
        peripherals:
          - name: walker
            kind: heart-rate
            format: u16
            address: C0:FF:EE:00:00:01
            rate: 5
            path: {0s: [0, 1], 10s: [0, 1], 15s: [40, 1], 20s: [40, 1], 25s: [80, 1], 35s: [80, 1], 60s: [0, 1]}
          - name: tag
            kind: beacon
            address: C0:FF:EE:00:00:30
            at: [18, 0]
            advertise:
              rssi: -50
              turn: 1s
              manufacturer_data:
                0x0499:
                  - 0510a44678c3d40004fffc040cac364200c8c0ffee000030
                  - 0510ae463cc3d70004fffc040cac364200c9c0ffee000030
                  - 0510c245d8c3d30004fffc040cac364200cac0ffee000030
          - {name: dial, kind: number-service, address: C0:FF:EE:00:00:10, at: [1, 0], rate: 0}

        """
    private static let devices = """
          - {name: walker, address: C0:FF:EE:00:00:01}
          - {name: tag, address: C0:FF:EE:00:00:30, profiles: [ruuvitag]}
          - {name: dial, address: C0:FF:EE:00:00:10, gateways: [west, middle]}
        """
    private static let gateways = ["west", "middle", "east"]

    @Test func `a walking strap is handed over, and each reading is stored by one gateway`() async throws {
        let site = try await FleetSite(Self.scenario, gateways: Self.gateways, devices: Self.devices)
        try await eventually {
            let links = await site.readyLinks(of: "walker")
            return Self.gateways.allSatisfy { links[$0, default: 0] > 0 } && links.values.contains { $0 > 1 }
        }
        await site.stop()
        try await checkReadings(site)
        try await checkEpochs(site)
        #expect(try await site.value("SELECT count(*) FROM gattherd.leases WHERE state = 'owned'") == "0")
    }

    /// Each notification that a gateway received is in the history of one gateway.
    private func checkReadings(_ site: FleetSite) async throws {
        let truth = try Truth(path: site.truthPath)
        let events = truth.entries.filter { $0.dev == Self.walker }
        let sent = events.filter { $0.event == "notification" && $0.delivered == true && $0.char == "2a37" }
        let ends = events.filter { $0.event == "disconnect" }.map(\.t)
        let rows = try await site.histories(
            "SELECT value FROM history WHERE device = 'walker' AND metric = 'heart_rate' AND source = 'notify'"
        )
        let stored = rows.compactMap { Int($0[1]) }
        // The heart rate numbers the notifications modulo 500. On a slow machine there are more than 500.
        let heartRates = sent.compactMap { entry in entry.n.map { 256 + $0 % 500 } }
        let copies = Dictionary(stored.map { ($0, 1) }, uniquingKeysWith: +)
        let repeated = copies.filter { heartRate, count in count > max(1, heartRates.count { $0 == heartRate }) }
        #expect(repeated.isEmpty, "readings were stored twice")
        // Values on their way when the radio lost the link are lost.
        let lost = sent.filter { entry in
            guard let number = entry.n, !stored.contains(256 + number % 500) else { return false }
            return !ends.contains { $0 - entry.t >= 0 && $0 - entry.t < 600_000 }
        }
        #expect(lost.isEmpty, "\(lost.count) of \(sent.count) are lost")
        #expect(stored.count > 30)
        let owners = Set(rows.map { $0[0] })
        #expect(owners == Set(Self.gateways))
    }

    /// No epoch of a device had two owners, and links never overlapped.
    private func checkEpochs(_ site: FleetSite) async throws {
        let rows = try await site.histories(
            "SELECT device, json_extract(detail, '$.epoch'), json_extract(detail, '$.state') FROM events "
                + "WHERE kind = 'lease' AND json_extract(detail, '$.state') LIKE 'owned by %'"
        )
        var owners: [String: Set<String>] = [:]
        for row in rows { owners["\(row[1]) \(row[2])", default: []].insert(row[3]) }
        #expect(owners.values.allSatisfy { $0.count == 1 })
        let links = try Truth(path: site.truthPath).entries.filter { $0.dev == Self.walker }
        var open = 0
        for entry in links where entry.event == "connect" || entry.event == "disconnect" {
            open += entry.event == "connect" ? 1 : -1
            #expect((0...1).contains(open))
        }
    }

    @Test func `a tag is published by its owner only, and why names the bids`() async throws {
        let site = try await FleetSite(Self.scenario, gateways: Self.gateways, devices: Self.devices)
        let owner = try await site.waitForOwner(of: "tag")
        let other = owner == "west" ? "middle" : "west"
        let member = try #require(site.members.first { $0.name == other })
        try await eventually {
            let text = try await FleetSite.gattherd("why", "tag", "--config", member.configuration)
            return text.contains("gateway \(owner) owns it") && text.contains("\(owner) hears it with")
        }
        // Readings from before the first owner may still be on their way.
        let start = try await site.value("SELECT gattherd.rfc3339(floor(extract(epoch FROM now()) * 1000000)::bigint)")
        let subscriber = try await Subscriber(site.broker, to: "gattherd/+/tag/#")
        let count = "SELECT count(*) FROM history WHERE device = 'tag'"
        let before = try await member.history.value(count)
        try await eventually {
            let heard = try await member.history.value(count)
            return readings(subscriber, since: start).count >= 5 && Int(heard) ?? 0 > (Int(before) ?? 0) + 5
        }
        let published = readings(subscriber, since: start)
        #expect(Set(published.map { $0.topic.split(separator: "/")[1] }) == [owner[...]])
        let why = try await FleetSite.gattherd("fleet", "why", site.adminURL, "tag")
        #expect(why.contains(owner) && why.contains("steady"))
        let devices = try await FleetSite.gattherd("fleet", "devices", site.adminURL)
        #expect(devices.contains("OWNER"))
    }

    /// The readings that were heard since a time in RFC 3339.
    private func readings(_ subscriber: Subscriber, since start: String) -> [ReceivedMessage] {
        subscriber.messages.filter { message in
            guard let time = message.payload.firstMatch(of: /"ts":"([^"]+)"/)?.1 else { return false }
            return message.payload.hasPrefix("{\"seq\":") && !message.isRetained && time > start
        }
    }

    @Test func `a control is carried out by the owner only, under its epoch, each transaction once`() async throws {
        let site = try await FleetSite(Self.scenario, gateways: Self.gateways, devices: Self.devices)
        _ = try await site.waitForOwner(of: "dial", "west")
        try await eventually { await site.readyLinks(of: "dial")["west", default: 0] > 0 }
        let epoch = try await site.value("SELECT epoch FROM gattherd.leases WHERE device = 'dial'")
        let leases = try await Subscriber(site.broker, to: "gattherd/+/dial/lease")
        let owned = #"{"state":"owner","owner":"west","epoch":\#(epoch)}"#
        let known = await leases.messages { messages in
            Set(messages.map(\.topic)).count == Self.gateways.count && messages.contains { $0.payload == owned }
        }
        #expect(Set(known.filter { $0.payload == owned }.map(\.topic)) == ["gattherd/west/dial/lease"])
        let responses = try await Subscriber(site.broker, to: "gattherd/+/dial/number/result")
        let requests = [
            ("middle", #"{"value": 1, "transaction": 1}"#, "not_owner"),
            ("west", #"{"value": 2, "transaction": 2, "epoch": 5}"#, "other_epoch"),
            ("west", #"{"value": 3, "transaction": 3, "epoch": \#(epoch)}"#, "\"ok\""),
            ("west", #"{"value": 4, "transaction": 3, "epoch": \#(epoch)}"#, "repeated"),
            ("west", #"{"value": 5, "transaction": 4}"#, "\"ok\""),
        ]
        for (number, (gateway, request, answer)) in requests.enumerated() {
            try await site.broker.publish(request, to: "gattherd/\(gateway)/dial/number/set")
            let messages = await responses.messages { $0.count > number }
            #expect(messages.last?.payload.contains(answer) == true, "\(messages.last?.payload ?? "none")")
        }
        await site.stop()
        let writes = try Truth(path: site.truthPath).entries.filter { $0.event == "write" }.compactMap(\.hex)
        #expect(writes.count == 2, "\(writes)")
    }
}
