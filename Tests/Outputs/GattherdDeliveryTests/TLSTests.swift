import FoundationEssentials
import GattherdDelivery
import GattherdMQTT
import GattherdMachines
import GattherdSync
import TestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(3)))
struct TLSTests {
    private let authority: Authority

    init() async throws {
        authority = try await Authority()
    }

    /// A broker with an additional TLS listener.
    private func broker(_ identity: Authority.Identity, _ more: String...) throws -> Broker {
        let files = ["certfile \(identity.certificate)", "keyfile \(identity.key)", "cafile \(authority.certificate)"]
        return try Broker(secure: files + more)
    }

    private func settings(_ change: (inout TLSSettings) -> Void = { _ in }) -> TLSSettings {
        var tls = TLSSettings()
        tls.ca = authority.certificate
        change(&tls)
        return tls
    }

    /// A delivery to the TLS listener.
    private func secure(
        _ fixture: DeliveryFixture,
        _ version: DeliverySettings.Version = .v5,
        host: String = "localhost",
        _ change: (inout TLSSettings) -> Void = { _ in }
    ) -> MQTTDelivery {
        fixture.delivery(version) { settings in
            settings.host = host
            settings.port = UInt16(fixture.broker.securePort)
            settings.tls = self.settings(change)
            settings.waitInEarnest()
        }
    }

    /// Returns the fault of an attempt to connect; a server that does not answer is given up after `limit`.
    private func fault(
        _ port: Int,
        _ tls: TLSSettings,
        host: String = "localhost",
        within limit: Duration = .seconds(60)
    ) async throws -> BrokerFault? {
        let delivery = DeliveryFixture(try Broker()).delivery(.v5) { settings in
            settings.host = host
            settings.port = UInt16(port)
            settings.tls = tls
            settings.options.connectTimeout = limit
        }
        let result = LatestValue<BrokerFault?>(nil)
        await delivery.running { result.set(await delivery.waitForFault()) }
        return result.state
    }

    @Test(
        arguments: [DeliverySettings.Version.v5, .v311]
    )
    func `readings arrive over TLS in order, also after an outage of the broker`(
        version: DeliverySettings.Version
    ) async throws {
        let fixture = DeliveryFixture(try broker(try await authority.identity(for: "DNS:localhost", "IP:127.0.0.1")))
        try await fixture.broker.start()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = secure(fixture, version)
        try await delivery.running {
            fixture.log.commit(300)
            await subscriber.messages { $0.seqs.count >= 300 }
            await fixture.broker.kill()
            _ = await delivery.waitForFault()
            fixture.log.commit(300)
            try await fixture.broker.start()
            let messages = await subscriber.messages { Set($0.seqs).count >= 600 }
            #expect(messages.firstSeqs == Array(1...600))
        }
    }

    @Test func `all requests in one segment are answered`() async throws {
        let fixture = DeliveryFixture(try broker(try await authority.identity(for: "DNS:localhost", "IP:127.0.0.1")))
        try await fixture.broker.start()
        let subscriber = try await Subscriber(fixture.broker)
        try await secure(fixture).running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            let numbers = (1...50).map { "\($0)\n" }.joined()
            try await fixture.broker.publish(numbers.utf8, to: "gattherd/lab/lamp/number/set", lines: true)
            await subscriber.messages { $0.count(on: "lamp/number/result") == 50 }
        }
    }

    struct Flaw: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let words: [String]
        let identity: @Sendable (Authority) async throws -> Authority.Identity
    }

    static let flaws = [
        Flaw(testDescription: "expired", words: ["expired at", "renew it", "clock"]) {
            try await $0.identity(for: "DNS:localhost", days: -1)
        },
        Flaw(testDescription: "another name", words: ["is not for 'localhost'", "mqtt.tls.server_name"]) {
            try await $0.identity(for: "DNS:elsewhere", "IP:127.0.0.1")
        },
        Flaw(testDescription: "a part of the name is a wildcard", words: ["is not for 'localhost'"]) {
            try await $0.identity(for: "DNS:local*")
        },
        Flaw(testDescription: "signed by itself", words: ["signed by itself", "mqtt.tls.ca"]) {
            try await $0.selfSigned()
        },
        Flaw(testDescription: "unknown authority", words: ["signed by '/CN=somebody'", "mqtt.tls.ca"]) { _ in
            try await Authority("somebody").identity(for: "DNS:localhost")
        },
    ]

    @Test(arguments: flaws)
    func `a broker with a wrong certificate is not trusted, and the fault says why`(flaw: Flaw) async throws {
        let identity = try await flaw.identity(authority)
        let broker = try broker(identity)
        try await broker.start()
        let fault = try #require(try await fault(broker.securePort, settings()))
        #expect(fault.kind == .security)
        for words in flaw.words { #expect(fault.detail.contains(words), "\(fault.detail)") }
    }

    @Test func `without a configured authority, the system's authorities reject the test certificate`() async throws {
        let broker = try broker(try await authority.identity(for: "DNS:localhost"))
        try await broker.start()
        let fault = try #require(try await fault(broker.securePort, TLSSettings()))
        #expect(fault.kind == .security)
        #expect(fault.detail.contains("signed by '/CN=laboratory'"))
    }

    @Test func `a self-signed certificate is trusted if it is configured`() async throws {
        let identity = try await authority.selfSigned()
        let fixture = DeliveryFixture(try broker(identity))
        try await fixture.broker.start()
        let delivery = secure(fixture) { $0.ca = identity.certificate }
        await delivery.running { await delivery.wait(for: .connected) }
    }

    @Test func `the verified name may differ from the host, and addresses are verified as addresses`() async throws {
        let fixture = DeliveryFixture(try broker(try await authority.identity(for: "DNS:broker.lab", "IP:127.0.0.1")))
        try await fixture.broker.start()
        let named = secure(fixture) { $0.serverName = "broker.lab" }
        await named.running { await named.wait(for: .connected) }
        let addressed = secure(fixture, host: "127.0.0.1")
        await addressed.running { await addressed.wait(for: .connected) }
    }

    @Test func `the server name is sent to the broker, but never an address`() async throws {
        let identity = try await authority.identity(for: "DNS:localhost", "IP:127.0.0.1")
        let names = ["-servername", "other", "-cert2", identity.certificate, "-key2", identity.key]
        let named = try await TLSServer(identity, names)
        _ = try await fault(named.port, settings(), within: .seconds(2))
        #expect(await named.line(with: "Hostname in TLS extension") == "Hostname in TLS extension: \"localhost\"")
        let strict = try await TLSServer(identity, names + ["-servername_fatal"])
        let fault = try await fault(strict.port, settings(), host: "127.0.0.1", within: .seconds(2))
        #expect(fault?.detail.contains("in time") == true, "an address would be refused as a wrong name")
    }

    @Test func `a demanded client certificate is sent, and a missing one is reported`() async throws {
        let identity = try await authority.identity(for: "DNS:localhost")
        let fixture = DeliveryFixture(try broker(identity, "require_certificate true"))
        try await fixture.broker.start()
        let client = try await authority.identity(for: "DNS:gateway")
        let known = secure(fixture) { ($0.certificate, $0.key) = (client.certificate, client.key) }
        await known.running { await known.wait(for: .connected) }
        let missing = try #require(try await fault(fixture.broker.securePort, settings()))
        #expect(missing.detail.contains("mqtt.tls.certificate"), "\(missing.detail)")
        let foreign = try await Authority("somebody").identity(for: "DNS:gateway")
        let refused = try #require(
            try await fault(
                fixture.broker.securePort,
                settings { ($0.certificate, $0.key) = (foreign.certificate, foreign.key) }
            )
        )
        #expect(refused.detail.contains("mqtt.tls.certificate"), "\(refused.detail)")
    }

    @Test func `a demanded client certificate works with TLS 1.2 as well`() async throws {
        let identity = try await authority.identity(for: "DNS:localhost")
        let server = try await TLSServer(identity, ["-tls1_2", "-Verify", "1"])
        let fault = try #require(try await fault(server.port, settings()))
        #expect(fault.kind == .security)
        #expect(fault.detail.contains("set mqtt.tls.certificate"), "\(fault.detail)")
        let foreign = try await Authority("somebody").identity(for: "DNS:gateway")
        let strict = try await TLSServer(
            identity,
            ["-tls1_2", "-Verify", "1", "-verify_return_error", "-CAfile", authority.certificate]
        )
        let refused = try #require(
            try await self.fault(
                strict.port,
                settings { ($0.certificate, $0.key) = (foreign.certificate, foreign.key) }
            )
        )
        #expect(refused.kind == .security)
        #expect(refused.detail.contains("does not accept the client certificate"), "\(refused.detail)")
    }

    @Test func `a broker below the minimum TLS version is not used`() async throws {
        let identity = try await authority.identity(for: "DNS:localhost")
        let server = try await TLSServer(identity, ["-tls1_2"])
        let fault = try #require(try await fault(server.port, settings { $0.minimumVersion = .v13 }))
        #expect(fault.kind == .security)
        #expect(fault.detail.contains("min_version"), "\(fault.detail)")
    }

    @Test func `TLS to a plain port, and plain MQTT to a TLS port, are reported as such`() async throws {
        let plain = try Broker()
        try await plain.start()
        let fault = try #require(try await fault(plain.port, settings()))
        #expect(
            fault.detail.contains("without an answer") || fault.detail.contains("does not speak TLS"),
            "\(fault.detail)"
        )
        let fixture = DeliveryFixture(try broker(try await authority.identity(for: "DNS:localhost")))
        try await fixture.broker.start()
        let delivery = fixture.delivery { $0.port = UInt16(fixture.broker.securePort) }
        await delivery.running {
            #expect(await delivery.waitForFault()?.detail.contains("mqtts://") == true)
        }
    }

    @Test func `a repaired file is used without a restart`() async throws {
        let fixture = DeliveryFixture(try broker(try await authority.identity(for: "DNS:localhost")))
        try await fixture.broker.start()
        let folder = try TemporaryFolder()
        let delivery = secure(fixture) { $0.ca = folder.file("ca.pem") }
        try await delivery.running {
            let fault = await delivery.waitForFault()
            #expect(fault?.kind == .security)
            #expect(fault?.detail.contains("ca.pem' cannot be used: No such file") == true)
            let text = try String(contentsOfFile: authority.certificate, encoding: .utf8)
            try folder.write(text, to: "ca.pem")
            await delivery.wait(for: .connected)
        }
    }

    @Test func `each unusable file is reported by its role`() async throws {
        let (one, other) = (try await authority.identity(for: "DNS:a"), try await authority.identity(for: "DNS:b"))
        try settings { ($0.certificate, $0.key) = (one.certificate, one.key) }.check()
        let wrong: [(TLSFileError.Role, TLSSettings)] = [
            (.ca, settings { $0.ca = one.key }), (.ca, settings { $0.ca = "/nowhere" }),
            (.certificate, settings { ($0.certificate, $0.key) = (one.key, one.key) }),
            (.key, settings { ($0.certificate, $0.key) = (one.certificate, other.key) }),
            (.key, settings { ($0.certificate, $0.key) = (one.certificate, one.certificate) }),
        ]
        for (role, settings) in wrong {
            let error = #expect(throws: TLSFileError.self) { try settings.check() }
            #expect(error?.role == role, "\(error.debugDescription)")
        }
    }

    @Test func `a key with a pass phrase is refused without a prompt`() async throws {
        let identity = try await authority.identity(for: "DNS:a")
        let locked = identity.key + ".locked"
        try await Authority.openssl(["ec", "-in", identity.key, "-aes256", "-passout", "pass:x", "-out", locked])
        let error = #expect(throws: TLSFileError.self) {
            try settings { ($0.certificate, $0.key) = (identity.certificate, locked) }.check()
        }
        #expect(error?.description.contains("without a pass phrase") == true)
    }
}
