import GattherdConfig
import GattherdModel
import GattherdOutputs
import Testing

@testable import GattherdPostgres

struct PostgresSectionTests {
    private func parse(_ text: String) -> (configuration: Configuration, errors: [ConfigError]) {
        Configuration.parseLeniently(
            [ConfigSource(name: "/etc/x/gattherd.yaml", text: text)],
            in: ConfigEnvironment(variables: [:], hostName: "host"),
            outputs: [PostgresOutput.self]
        )
    }

    private func settings(_ text: String) throws -> PostgresSettings {
        let (configuration, errors) = parse(text)
        try #require(errors.isEmpty, "\(errors)")
        return try #require(configuration.outputs.first?.settings(of: PostgresOutput.self))
    }

    @Test func `the URL is the only required key`() throws {
        let settings = try settings("postgres: {url: 'postgresql://db.example.com/gattherd'}")
        #expect("\(settings.url.value)" == "db.example.com/gattherd")
        #expect(settings.password == nil && settings.authority == nil && settings.gateway == nil)
        #expect(PostgresOutput.findings(settings).isEmpty)
        #expect(PostgresOutput.content(settings) == .everything)
    }

    @Test func `all keys are read, and paths are relative to the folder of the file`() throws {
        let settings = try settings(
            "postgres: {url: 'postgresql:///x', password_file: p, ca_file: /ca, gateway: attic, max_backlog: 5000}"
        )
        #expect(settings.password?.value == "/etc/x/p" && settings.authority?.value == "/ca")
        #expect(settings.gateway == "attic")
    }

    @Test(arguments: [
        ("postgres: {}", "url"), ("postgres: {url: 'http://db/x'}", "postgresql://"),
        ("postgres: {url: 'postgresql://db'}", "no database"),
        ("postgres: {url: 'postgresql://me:secret@db/x'}", "password_file"),
        ("postgres: {url: 'postgresql://db/x?password=s3cret&sslmod=y'}", "password_file"),
        ("postgres: {url: 'postgresql://db/x?sslmod=y&password=s3cret'}", "password_file"),
        ("postgres: {url: 'postgresql://db/x', password: secret}", "password_file"),
        ("postgres: {url: 'postgresql://db/x', gateway: 'No Slug'}", "a-z"),
    ])
    func `a mistake is reported with the remedy, without the secret`(text: String, words: String) {
        let errors = parse(text).errors
        #expect(errors.count == 1)
        #expect(errors.first.map { "\($0.problem)".contains(words) } == true, "\(errors)")
        for secret in ["secret@", "s3cret"] {
            #expect(errors.first.map { "\($0.problem)".contains(secret) } == false)
        }
    }

    @Test func `a server that is not verified is a warning`() throws {
        let settings = try settings("postgres: {url: 'postgresql://db.example.com/x?sslmode=require'}")
        #expect(PostgresOutput.findings(settings).map(\.severity) == [.warning])
    }

    private func errors(of second: String) -> [ConfigError] {
        let first = "postgresql://db-1.example.com,db-2.example.com/x"
        return parse("postgres: [{url: '\(first)'}, {name: copy, \(second)}]").errors
    }

    @Test(arguments: [
        "url: 'postgresql://db-2.example.com:5432,DB-1.example.com:5432/x?connect_timeout=5'",
        "url: 'postgresql://someone@db-1.example.com,db-2.example.com/x', gateway: host",
    ])
    func `a second output to the same database is a mistake`(second: String) {
        let errors = errors(of: second)
        #expect(errors.map(\.severity) == [.error])
        #expect(errors.first.map { "\($0.problem)".contains("delivers to this receiver already") } == true)
    }

    @Test(arguments: [
        "url: 'postgresql://db-1.example.com,db-2.example.com/y'", "url: 'postgresql://db-1.example.com/x'",
        "url: 'postgresql://db-1.example.com:6432,db-2.example.com/x'",
        "url: 'postgresql://db-1.example.com,db-2.example.com/x', gateway: other",
    ])
    func `outputs to two databases, or as two gateways, are allowed`(second: String) {
        #expect(errors(of: second).isEmpty)
    }
}
