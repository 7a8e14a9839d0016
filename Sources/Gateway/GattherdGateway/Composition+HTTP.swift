import FoundationEssentials
package import GattherdConfig
import GattherdDaemon
import GattherdDelivery
import GattherdHTTP
import GattherdLog
import GattherdModel
import GattherdSync
import Glibc

extension Composition: HTTPBackend {
    func status() async -> DaemonStatus { status }

    func connect(_ device: String) async throws(ControlError) { try await gateway.herd.connect(device) }

    func disconnect(_ device: String) async throws(ControlError) { try await gateway.herd.disconnect(device) }

    func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError> {
        await gateway.herd.controls.set(request)
    }

    func history(_ query: RecordQuery) async -> Result<[UInt8], RecordQueryError> { await desk.page(query) }

    func events(_ query: RecordQuery) async -> Result<[UInt8], RecordQueryError> { await desk.events(query) }

    func rejects(_ query: RecordQuery) async -> Result<[UInt8], RecordQueryError> { await desk.rejects(query) }

    var showsSamples: Bool { configuration.http?.hasSampleMetrics ?? false }

    var now: Timestamp { SystemClock.now }

    var counters: [DescribedCounter] {
        let remedies = gateway.herd.counters
        return [
            DescribedCounter(gateway.recorder.dropped, "Events that were not stored"),
            DescribedCounter(gateway.recorder.leftOut, "Events left out because their source had too many"),
            DescribedCounter(remedies.discoveryRestarts, "Scans restarted because they heard nothing"),
            DescribedCounter(remedies.sessionRenewals, "Times that gattherd came back to the bus as a new client"),
            DescribedCounter(remedies.silenceProbes, "Requests to connected devices that said nothing"),
            DescribedCounter(remedies.powerCycles, "Adapters switched off and on because they did not work"),
            DescribedCounter(remedies.interruptions, "Subscriptions that ended while the link was up"),
            DescribedCounter(remedies.ignoredAttributes, "GATT attributes ignored because a peripheral has too many"),
        ] + (delivery?.counters.described ?? [])
    }

    /// Serves HTTP until cancelled; returns at once if `http` is not configured.
    func serveHTTP() async {
        guard let http = configuration.http else { return }
        let server = HTTPServer(host: http.listen.host, port: http.listen.port, log: log)
        await HTTPService(self, live: board, access: AccessRules(http, token: token), server: server, log: log).run()
    }
}

extension DeliveryCounters {
    fileprivate var described: [DescribedCounter] {
        [
            DescribedCounter(published, "Readings handed to the broker, each time that they were"),
            DescribedCounter(republished, "Readings handed to the broker once more"),
            DescribedCounter(suppressed, "Readings not published because their policy wants fewer"),
            DescribedCounter(refused, "Readings that the broker refused for good"),
            DescribedCounter(connects, "Sessions with the broker"),
            DescribedCounter(eventsDropped, "Events that were not published"),
            DescribedCounter(answersDropped, "Answers that were not published"),
            DescribedCounter(requests, "Requests by MQTT that were answered"),
            DescribedCounter(topicsSetAside, "Topics that were set aside because the broker refuses them"),
            DescribedCounter(
                messagesRefused,
                "Messages to us that are too long, or cannot be answered on their topics"
            ),
            DescribedCounter(retainedRequestsIgnored, "Retained requests, which are never honoured"),
            DescribedCounter(misnamedRequests, "Requests to topics that name nothing that can exist"),
        ]
    }
}

extension AccessRules {
    fileprivate init(_ settings: HTTPSettings, token: Locked<AccessToken?>) {
        self.init(
            isLoopback: settings.listen.isLoopback,
            names: Set(settings.hosts + HostName.all + [settings.listen.host]),
            token: token.withLock { $0 }
        )
    }
}

extension Configuration {
    /// The findings about the files that the sections `mqtt` and `http` name.
    package var secretFindings: [ConfigError] { (mqtt?.findings ?? []) + (http?.findings ?? []) }
}

extension HTTPSettings {
    /// What is wrong with the file that the section names.
    package var findings: [ConfigError] {
        guard let tokenFile else { return [] }
        let file = SecretFile(path: tokenFile.value)
        if let reason = file.unreadable("token") { return [ConfigError(.file(reason), about: tokenFile)] }
        guard file.token != nil else {
            let advice = "run: (umask 027; openssl rand -hex 32 > '\(file.path)'; chgrp gattherd '\(file.path)')"
            let rule = "the token must be \(AccessToken.shortest) or more characters of ASCII, without spaces"
            return [ConfigError(.file("\(rule); \(advice)"), about: tokenFile)]
        }
        return file.exposure.map { [.exposed(tokenFile, $0)] } ?? []
    }

    /// Says what is wrong with the files of the section.
    ///
    /// - Throws: ``GatewayError`` when one cannot be used.
    func check(_ log: Log) throws(GatewayError) {
        for finding in findings {
            guard finding.severity == .warning else { throw GatewayError(.configuration, finding.description) }
            log(.warning, "a file of the configuration should be changed", [LogField("advice", finding.problem)])
        }
    }
}

extension HTTPSettings {
    /// The token as its file has it now.
    var token: AccessToken? { tokenFile.flatMap { SecretFile(path: $0.value).token } }
}

extension SecretFile {
    fileprivate var token: AccessToken? { firstLine.flatMap { AccessToken($0) } }
}

/// What this host is called in its network.
private enum HostName {
    static var all: [String] {
        var octets = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&octets, octets.count - 1) == 0 else { return [] }
        let name = String(decoding: octets.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let label = String(name.prefix { $0 != "." })
        return [name, label, label + ".local"]
    }
}
