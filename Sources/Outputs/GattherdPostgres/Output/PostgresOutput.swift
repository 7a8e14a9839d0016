package import GattherdConfig
import GattherdLog
package import GattherdModel
package import GattherdOutputs
import GattherdSync

/// The section `postgres`.
package struct PostgresSettings: Hashable, Sendable {
    package var url: Located<PostgresURL>
    package var password: Located<String>?
    package var authority: Located<String>?
    /// The gateway's name at the centre; `nil` for its own.
    package var gateway: String?

    package init(url: Located<PostgresURL>) {
        self.url = url
    }
}

extension PostgresSettings {
    /// Makes the connection with which a gateway reads and writes the leases of its devices.
    ///
    /// - Parameters:
    ///   - name: The gateway's own name.
    ///   - readSecret: Reads the password.
    /// - Returns: The leases; nothing is connected yet.
    package func leases(ofGateway name: String, readSecret: @escaping OutputContext.SecretReader) -> PostgresLeases {
        let gateway = gateway ?? name
        return PostgresLeases(client(gateway: gateway, readSecret: readSecret), url: url.value, gateway: gateway)
    }

    /// A client of the gateway's role; all clients of these settings share the connections.
    fileprivate func client(gateway: String, readSecret: @escaping OutputContext.SecretReader) -> PostgresClient {
        let target = PostgresConnections.Target(
            url: url.value,
            user: FleetRole.name(of: gateway),
            authority: authority?.value,
            passwordFile: password?.value
        )
        return PostgresClient(
            target.url,
            user: target.user,
            authority: target.authority,
            connections: .shared(to: target)
        ) { [password] in
            guard let file = password else { return nil }
            do throws(OutputError) { return try readSecret(file.value, "password") } catch { return nil }
        }
    }
}

/// The output `postgres`: the central history of several gateways.
package enum PostgresOutput: OutputDefinition {
    package static let section = "postgres"

    package static func read(_ section: SectionReader, _ environment: OutputEnvironment) -> PostgresSettings? {
        let url = url(section)
        let instead = "put it into a file that only gattherd may read, and write password_file"
        section.forbid("password", .secret(key: "password", instead: instead))
        let password = section.value("password_file", .path).map { environment.resolve($0) }
        let authority = section.value("ca_file", .path).map { environment.resolve($0) }
        let gateway = section.value("gateway", .slug)?.value
        guard let url else { return nil }
        var configuration = PostgresSettings(url: url)
        (configuration.password, configuration.authority) = (password, authority)
        configuration.gateway = gateway
        return configuration
    }

    package static let descriptions: [String: ConfigDescription] = [
        "": ConfigDescription("The central history of many gateways in PostgreSQL."),
        "url": ConfigDescription(
            "The database; several hosts are separated by commas.",
            example: "postgresql://db.example.com/gattherd"
        ),
        "password_file": ConfigDescription(
            "A file whose first line is the password that `gattherd fleet add` gave.",
            example: "/etc/gattherd/postgres-password",
            otherwise: "none"
        ),
        "ca_file": ConfigDescription(
            "The authorities that sign the server's certificate.",
            example: "/etc/gattherd/centre.pem",
            otherwise: "the system's"
        ),
        "gateway": ConfigDescription("The gateway's name at the centre.", example: "attic", otherwise: "its own name"),
    ]

    package static func content(_ settings: PostgresSettings) -> JournalConsumerOptions.Content { .everything }

    package static func make(
        _ settings: PostgresSettings,
        _ context: OutputContext
    ) throws(OutputError) -> any Output {
        if let file = settings.password { _ = try context.readSecret(file.value, "password") }
        let gateway = settings.gateway ?? context.gateway
        let client = settings.client(gateway: gateway, readSecret: context.readSecret)
        let journal = context.journal
        let log = context.log.with(LogField("output", context.name))
        let sink = PostgresSink(
            client,
            url: settings.url.value,
            gateway: gateway,
            version: context.version,
            output: context.name,
            writers: .current,
            upkeepFailed: { task, detail in
                let fields = [LogField("task", task.rawValue), LogField("output.error", detail)]
                log(.warning, "upkeep of the centre has failed; retrying", fields)
            },
            devices: context.devices
        ) {
            for await seq in journal.heads() { return seq }
            return nil
        }
        return ReportingOutput(BatchOutput(context, target: "\(settings.url.value)", sink: sink), sink)
    }

    package static func files(_ settings: PostgresSettings) -> [NamedFile] {
        let secret = settings.password.map { NamedFile($0, .secret("password", isReadAgain: true)) }
        return [secret].compactMap(\.self) + NamedFile.tls(ca: settings.authority, certificate: nil, key: nil)
    }

    /// The database and the gateway: the centre keeps one cursor for each gateway.
    package static func receiver(_ settings: PostgresSettings, _ environment: OutputEnvironment) -> String? {
        "\(section) \(settings.url.value.target) \(settings.gateway ?? environment.gateway)"
    }

    /// An unchecked server is a warning.
    package static func findings(_ settings: PostgresSettings) -> [ConfigError] { unverified(settings.url) }

    private static func unverified(_ url: Located<PostgresURL>) -> [ConfigError] {
        guard !url.value.isVerified, let place = url.place else { return [] }
        let text =
            "the server is not verified, so another one could take the history; leave out sslmode, or write verify-full"
        return [ConfigError(.exposedSecret(text), at: place, severity: .warning)]
    }

    private static func url(_ section: SectionReader) -> Located<PostgresURL>? {
        let (noun, advice) = ("a database's URL", "write for example postgresql://db.example.com/gattherd")
        guard let text = section.required("url", ConfigGrammar(noun: noun, advice: advice) { $0 }),
            let place = text.place
        else { return nil }
        do throws(PostgresURL.Problem) {
            return Located(try PostgresURL(text.value), at: place)
        } catch {
            if error.hasPassword {
                section.report(.secret(key: "url", instead: "write password_file instead"), at: place)
            } else {
                section.report(.invalid(text.value, expected: noun, advice: "\(error.text); \(advice)"), at: place)
            }
            return nil
        }
    }
}

/// The output, with a report to the centre once a minute: a gateway without new entries is seen, too.
///
/// Its corrections are completed as well.
final class ReportingOutput: Output {
    private let output: BatchOutput
    private let sink: PostgresSink
    private let pause: Duration

    init(_ output: BatchOutput, _ sink: PostgresSink, pause: Duration = .seconds(60)) {
        (self.output, self.sink, self.pause) = (output, sink, pause)
    }

    var name: String { output.name }
    var kind: String { output.kind }
    var status: OutputStatus { output.status }

    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.report() }
            await output.run()
            group.cancelAll()
        }
    }

    func roundTrip() async { await output.roundTrip() }

    func stop(within limit: Duration) async { await output.stop(within: limit) }

    /// Reports while the centre answers; the output itself finds out when it does so again.
    private func report() async {
        var last: Int64?
        while (try? await Task.sleep(for: pause, clock: .loop)) != nil {
            let status = output.status
            guard status.state == .connected else { continue }
            await sink.reportIfDue(after: pause * 5 / 6)
            if status.cursor == last { await sink.continueCorrections() }
            last = status.cursor
        }
    }
}
