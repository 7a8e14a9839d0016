import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

@Suite("A reload", .timeLimit(.minutes(5))) struct ReloadTests {
    @Test func `Devices come and go, and the others lose nothing`() async throws {
        let gateway = try await Gateway(
            Neighbourhood(.init("heart-rate", "strap", "rate: 20"), .init("heart-rate", "other", "rate: 20"))
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        var taken: [Substring] = []
        try gateway.editConfiguration { lines in
            taken = lines.filter { $0.contains("name: other") }
            return lines.filter { !$0.contains("name: other") }
        }
        daemon.signal(SIGHUP)
        try await gateway.waitForEvent("device", "dismissed")
        try await gateway.waitForReadings(20, of: "strap")
        #expect(try await gateway.command("status").1.contains("other") == false)
        try gateway.editConfiguration { $0 + taken }
        daemon.signal(SIGHUP)
        try await gateway.waitUntilReady(times: 1)
        try await gateway.waitForReadings(20)
        #expect(try await gateway.readyCount("strap") == 1)
        #expect(try await gateway.readyCount("other") == 2)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test func `A configuration that is wrong changes nothing, and says so`() async throws {
        let gateway = try await Gateway(Neighbourhood(.init("heart-rate", "strap", "rate: 20")))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try gateway.editConfiguration { $0.filter { !$0.contains("name: strap") } + ["  - {nmae: strap}"] }
        daemon.signal(SIGHUP)
        try await gateway.waitForEvent("daemon", "reload_failed")
        #expect(gateway.log.contains("nmae"))
        try await gateway.waitForReadings(20)
        #expect(try await gateway.readyCount("strap") == 1)
        try await gateway.end(daemon)
    }
}
