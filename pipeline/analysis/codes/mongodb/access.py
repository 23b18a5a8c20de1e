"""Codes about logins, rights, users and certificates."""

from __future__ import annotations

from typing import Final

from pipeline.analysis.codes.model import APPLICATION, CONFIGURATION, OPERATOR, REFUSAL, TRANSIENT
from pipeline.analysis.codes.mongodb.rows import MESSAGE, SERVER_LOG, family, row

ROWS: Final = (
    row(
        13,
        REFUSAL,
        OPERATOR,
        "The user has no role that allows this command on this namespace, or the client has not logged in.",
        "if the application may do it, give its user the role: `db.grantRolesToUser(USER, [ROLE])`; if it sends no "
        "login, give it credentials.",
        "give each service one role, kept with its deployment; authSource of the connection string names the database "
        "that holds the user.",
        area="right",
    ),
    row(
        18,
        REFUSAL,
        APPLICATION,
        "The server refused the login: user, password, authSource or mechanism is wrong.",
        "check user, password and authSource in the connection string of the application. If the client is unknown, "
        "somebody tries passwords: look at the address.",
        "rotate secrets so that the old and the new user are valid together; authMechanism of the client must be one "
        "of authenticationMechanisms of the server.",
        area="login",
    ),
    row(
        8000,
        REFUSAL,
        APPLICATION,
        "MongoDB Atlas refuses it: the login is wrong, or the cluster's tier does not allow the command.",
        f"{MESSAGE}; at a login check user, password and IP access list of the Atlas project.",
        "keep database users and their rights in the Atlas project with the deployment.",
        area="login",
    ),
    row(
        11,
        REFUSAL,
        APPLICATION,
        "There is no such user in this database.",
        "correct the user or authSource, or create the user: `db.createUser()`.",
        "create users before the applications that log in as them.",
        area="login",
    ),
    row(
        334,
        CONFIGURATION,
        APPLICATION,
        "The server does not offer the mechanism by which the client logs in.",
        "set authMechanism of the client to one that the server offers.",
        "set authenticationMechanisms (setParameter) of the server alike on all members.",
        area="login",
    ),
    row(
        214,
        REFUSAL,
        OPERATOR,
        "The user may log in from other addresses only (authenticationRestrictions).",
        "connect from an allowed address, or change the restriction: `db.updateUser()`.",
        "keep clientSource of the users up to date.",
        area="login",
    ),
    row(
        391,
        REFUSAL,
        APPLICATION,
        "The token of the login has expired; the driver logs in again.",
        "nothing if the driver logs in again by itself.",
        "use a driver that supports MONGODB-OIDC, and tokens that outlive an operation.",
        area="login",
    ),
    row(
        392,
        REFUSAL,
        APPLICATION,
        "The token of the login is not valid.",
        "look at issuer, audience and clock of whoever issues the token.",
        "set oidcIdentityProviders of the server to what the issuer states.",
        area="login",
    ),
    row(
        404,
        TRANSIENT,
        OPERATOR,
        "The server could not ask the LDAP server for the roles of the user.",
        "look whether the LDAP server answers.",
        "name more than one LDAP server in security.ldap.servers.",
        area="login",
    ),
    *family(
        REFUSAL,
        OPERATOR,
        "list what there is: `db.getRoles()` and `db.getUsers()`.",
        "keep users and roles in scripts that the deployment runs.",
        {
            31: "There is no such role.",
            32: "The role does not inherit from the other one.",
            33: "The role has no such privilege.",
            35: "The change of the user failed.",
            49: "The change of the role is not allowed: it would include itself, or is a built-in one.",
            58: "The change of the role failed.",
            45: "The stored data of the user contradicts itself.",
            80: "The stored data of the role contradicts itself.",
            69: "The stored users are of another version than the server.",
        },
    ),
    *family(
        CONFIGURATION,
        OPERATOR,
        "compare the TLS settings of client and server.",
        "use certificates that both sides trust, with the server's name in them, renewed in time.",
        {140: "A certificate or TLS setting is not valid.", 141: "The TLS handshake failed."},
    ),
    *family(
        CONFIGURATION,
        OPERATOR,
        SERVER_LOG,
        "configure auditing (MongoDB Enterprise), or do not ask for it.",
        {344: "The server does not audit.", 345: "The audit configuration cannot be changed while the server runs."},
    ),
    *family(
        CONFIGURATION,
        APPLICATION,
        f"{MESSAGE}.",
        "update the driver; an application name has at most 128 bytes.",
        {
            183: "The driver left out a field of its metadata.",
            184: "The application's name is longer than 128 bytes.",
            185: "The driver's metadata is larger than 512 bytes.",
            186: "The driver sent its metadata a second time on one connection.",
        },
    ),
)
