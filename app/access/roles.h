/* Who may ask what. Each route names the least role that may ask it: routes.c. */
#ifndef ROLES_H
#define ROLES_H

/* A role may do what the one before it may. No role is 0, so that a missing one is seen. */
enum role {
    ROLE_NOBODY = 1, /* everybody, without a token */
    ROLE_BUYER,      /* orders and reads of the buyer's own: the token's name is the user */
    ROLE_OPERATOR
};

#endif
