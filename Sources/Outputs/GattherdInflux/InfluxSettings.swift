package import GattherdConfig
import GattherdHTTPClient

/// The section `influx`.
package struct InfluxSettings: Hashable, Sendable {
    /// The files of the credentials; only the first line is used.
    package enum Credentials: Hashable, Sendable {
        case token(Located<String>)
        case password(user: String, Located<String>)
    }

    /// The section `influx.tls`.
    package struct TLS: Hashable, Sendable {
        package var ca: Located<String>?
        package var certificate: Located<String>?
        package var key: Located<String>?

        package init() {}
    }

    package var url: Located<ServerURL>
    package var database: InfluxOptions.Database
    package var credentials: Credentials?
    package var measurement = MeasurementName.stream
    package var compresses = true
    package var tls = TLS()
    /// The maximum number of readings of a request.
    package var batchEntries = 1000
    /// The time for which readings gather.
    package var batchInterval = Duration.seconds(1)

    package init(url: Located<ServerURL>, database: InfluxOptions.Database) {
        self.url = url
        self.database = database
    }

    /// The options of the sink, with credentials that were read.
    package func options(gateway: String, _ credentials: InfluxCredentials?) -> InfluxOptions {
        var options = InfluxOptions(gateway: gateway, url: url.value, database: database)
        options.credentials = credentials
        options.measurement = measurement
        options.compresses = compresses
        options.tls = HTTPTLSFiles(ca: tls.ca?.value, certificate: tls.certificate?.value, key: tls.key?.value)
        return options
    }
}

/// Reads the section `influx`.
struct InfluxReader {
    let environment: OutputEnvironment

    func settings(_ section: SectionReader) -> InfluxSettings? {
        let instead = "write token_file, or username and password_file, instead of user:password@"
        let url = section.url(Self.url, insteadOfPassword: instead)
        let database = database(section)
        let credentials = credentials(section)
        let tls = section.section("tls") { self.tls($0) } ?? InfluxSettings.TLS()
        let measurement = section.value("measurement", Self.measurement)?.value
        let compresses = section.value("gzip", .boolean)?.value
        let batch = section.section("batch") { batch in
            (batch.value("entries", .integer(1...10_000)), batch.value("interval", Self.interval))
        }
        if let place = section.place(of: "tls"), let url, !url.value.usesTLS {
            section.report(
                .conflict("'tls' needs a URL that begins with https://; write it, or remove 'tls'"),
                at: place
            )
        }
        guard let url, let database else { return nil }
        var settings = InfluxSettings(url: url, database: database)
        (settings.credentials, settings.tls) = (credentials, tls)
        settings.measurement = measurement ?? settings.measurement
        settings.compresses = compresses ?? settings.compresses
        settings.batchEntries = batch?.0?.value ?? settings.batchEntries
        settings.batchInterval = batch?.1?.value ?? settings.batchInterval
        return settings
    }

    private static var url: ConfigGrammar<ServerURL> {
        ConfigGrammar(noun: "a server's URL", advice: "write for example http://localhost:8086") { ServerURL($0) }
    }

    private func database(_ section: SectionReader) -> InfluxOptions.Database? {
        let bucket = section.value("bucket", Self.name("a bucket"))
        let organisation = section.value("org", Self.name("an organisation"))
        let database = section.value("database", Self.name("a database"))
        let policy = section.value("retention_policy", Self.name("a retention policy"))
        section.require("bucket", with: "org", in: Self.title)
        section.require("database", with: "retention_policy", in: Self.title)
        if let place = section.place(of: "bucket"), section.place(of: "database") != nil {
            let advice = "write database for InfluxDB 1 and VictoriaMetrics, bucket for InfluxDB 2 and 3"
            section.report(.conflict("'bucket' and 'database' exclude each other; \(advice)"), at: place)
            return nil
        }
        if let bucket { return .bucket(bucket.value, organisation: organisation?.value) }
        if let database { return .database(database.value, retentionPolicy: policy?.value) }
        if section.place(of: "bucket") == nil, section.place(of: "database") == nil, let place = section.place {
            let advice = "InfluxDB 1 and VictoriaMetrics need it; for InfluxDB 2 and 3 write bucket"
            section.report(.missing(key: "database", section: Self.title, advice: advice), at: place)
        }
        return nil
    }

    private func credentials(_ section: SectionReader) -> InfluxSettings.Credentials? {
        for (key, file) in [("token", "token_file"), ("password", "password_file")] {
            let instead = "put it into a file that only gattherd may read, and write \(file)"
            section.forbid(key, .secret(key: key, instead: instead))
        }
        let token = section.value("token_file", .path).map { environment.resolve($0) }
        let user = section.value("username", Self.name("a user"))
        let password = section.value("password_file", .path).map { environment.resolve($0) }
        section.requireBoth("username", "password_file", in: Self.title)
        if let place = section.place(of: "token_file"), section.place(of: "username") != nil {
            let advice = "a user with a password is for InfluxDB 1, a token for all others"
            section.report(.conflict("'token_file' and 'username' exclude each other; \(advice)"), at: place)
        }
        if let token { return .token(token) }
        guard let user, let password else { return nil }
        return .password(user: user.value, password)
    }

    private func tls(_ section: SectionReader) -> InfluxSettings.TLS {
        var tls = InfluxSettings.TLS()
        tls.ca = section.value("ca", .path).map { environment.resolve($0) }
        tls.certificate = section.value("certificate", .path).map { environment.resolve($0) }
        tls.key = section.value("key", .path).map { environment.resolve($0) }
        section.requireBoth("certificate", "key", in: Self.title)
        return tls
    }

    /// The section's name in errors.
    private static let title = "'influx'"

    private static var interval: ConfigGrammar<Duration> { .duration(.milliseconds(10) ... .seconds(3600)) }

    private static var measurement: ConfigGrammar<MeasurementName> {
        let advice = "write text with {stream}, {device} or {profile}, for example ble_{stream}"
        return ConfigGrammar(noun: "a measurement's name", advice: advice) { MeasurementName($0) }
    }

    private static func name(_ noun: String) -> ConfigGrammar<String> {
        ConfigGrammar(noun: noun, advice: "use 1 to 256 printable characters") { text in
            let isPrintable = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
            return (1...256).contains(text.utf8.count) && isPrintable ? text : nil
        }
    }
}

extension InfluxOutput {
    package static let descriptions: [String: ConfigDescription] = [
        "": ConfigDescription("InfluxDB 1, 2 and 3, VictoriaMetrics, and others with their API."),
        "url": ConfigDescription(
            "The server; http:// without TLS. A path before the API's is kept.",
            example: "https://influx.lan:8086"
        ),
        "database": ConfigDescription(
            "The database of InfluxDB 1 or VictoriaMetrics.",
            example: "home",
            otherwise: "none"
        ),
        "retention_policy": ConfigDescription(
            "The retention policy of InfluxDB 1; needs `database`.",
            example: "two_weeks",
            otherwise: "the database's own"
        ),
        "bucket": ConfigDescription("The bucket of InfluxDB 2 or 3.", example: "sensors", otherwise: "none"),
        "org": ConfigDescription("The organisation in InfluxDB 2; needs `bucket`.", example: "home", otherwise: "none"),
        "username": ConfigDescription("A user of InfluxDB 1.", example: "gateway", otherwise: "none"),
        "password_file": ConfigDescription(
            "A file whose first line is the user's password.",
            example: "/etc/gattherd/influx-password",
            otherwise: "none"
        ),
        "token_file": ConfigDescription(
            "A file whose first line is the token, for all others than InfluxDB 1.",
            example: "/etc/gattherd/influx-token",
            otherwise: "none"
        ),
        "measurement": ConfigDescription(
            "The measurement of a reading's point; {stream}, {device} and {profile} are replaced.",
            example: "\"{stream}\"",
            otherwise: "{stream}"
        ),
        "batch": ConfigDescription("The size of requests."),
        "batch.entries": ConfigDescription("The most readings in a request.", default: "1000"),
        "batch.interval": ConfigDescription("The time in which readings gather.", default: "1s"),
        "gzip": ConfigDescription("True if requests are compressed.", default: "true"),
    ]
}
