import GattherdDelivery
import GattherdMQTT
import GattherdMachines
import GattherdSync
import TestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct BrokerProbeTests {
    private func settings(_ broker: Broker, _ version: DeliverySettings.Version = .v5) -> DeliverySettings {
        var settings = DeliverySettings(gateway: "lab", host: "localhost", port: UInt16(broker.port))
        settings.version = version
        return settings
    }

    private func fault(_ settings: DeliverySettings, within limit: Duration = .seconds(60)) async -> BrokerFault? {
        do throws(BrokerFault) {
            try await BrokerProbe.connect(with: settings, within: limit)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [DeliverySettings.Version.v5, .v311])
    func `a probe leaves no trace`(version: DeliverySettings.Version) async throws {
        let broker = try Broker()
        try await broker.start()
        let subscriber = try await Subscriber(broker)
        #expect(await fault(settings(broker, version)) == nil)
        try await broker.publish("1", to: "last")
        let messages = await subscriber.messages { !$0.isEmpty }
        #expect(messages.map(\.topic) == ["last"])
    }

    @Test func `a probe does not disconnect a running daemon`() async throws {
        let fixture = DeliveryFixture(try Broker())
        try await fixture.broker.start()
        let delivery = fixture.delivery(.v5)
        await delivery.running {
            await delivery.wait(for: .connected)
            #expect(await fault(settings(fixture.broker)) == nil)
            #expect(delivery.session.state == .connected)
        }
    }

    @Test func `a probe is refused for the same reasons as a daemon`() async throws {
        let broker = try Broker(users: [("gateway", "secret")])
        #expect(await fault(settings(broker))?.kind == .unreachable)
        try await broker.start()
        #expect(await fault(settings(broker))?.kind == .credentials)
        var right = settings(broker)
        right.username = "gateway"
        right.password = Secret("secret")
        #expect(await fault(right) == nil)
        right.host = "host.invalid"
        #expect(await fault(right)?.kind == .unreachable)
    }

    @Test func `a broker with QoS 0 only is refused`() async throws {
        let broker = try Broker(settings: ["max_qos 0"])
        try await broker.start()
        #expect(await fault(settings(broker))?.kind == .session)
    }

    @Test func `a broker that does not answer times out`() async throws {
        let broker = try Broker()
        try await broker.start()
        broker.freeze()
        defer { broker.thaw() }
        #expect(await fault(settings(broker), within: .milliseconds(200))?.detail.contains("no answer in time") == true)
    }

    @Test func `the broker's certificate is verified`() async throws {
        let authority = try await Authority()
        let identity = try await authority.identity(for: "DNS:localhost")
        let files = ["certfile \(identity.certificate)", "keyfile \(identity.key)"]
        let broker = try Broker(secure: files)
        try await broker.start()
        var settings = settings(broker)
        settings.port = UInt16(broker.securePort)
        settings.tls = TLSSettings()
        #expect(await fault(settings)?.kind == .security)
        settings.tls?.ca = authority.certificate
        #expect(await fault(settings) == nil)
    }
}
